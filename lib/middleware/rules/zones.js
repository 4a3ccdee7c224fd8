// The limiters behind rules: one for each zone, and where each is kept in a store.
'use strict';

const { createHash } = require('node:crypto');
const { idToString } = require('../../ids');
const { partOfRegion } = require('../../shared/region');
const { countingPlace } = require('../counting-place');
const { limiterFor } = require('../limiter-for');
const { createPolicyNaming } = require('../policy-naming');
const { createLimitOf } = require('../request-limit');
const { patternText } = require('./pattern');

/** Of paths that are longer only a hash is kept. */
const LONGEST_PATH = 128;

/**
 * @typedef {object} Zone
 * @property {object} limiter
 * @property {object} policy as of read-rules.js
 * @property {Function | undefined} limitOf as of request-limit.js
 * @property {boolean} isPerPath whether its ids are those of bucketOf
 * @property {unknown} store, and
 * @property {Function} namePolicies as createMiddleware needs them
 */

/**
 * One zone for each rule that limits; rules that share a count get the same one.
 *
 * @returns {(Zone | undefined)[]}
 */
function createZones(settings) {
  const { rules, storeOptions } = settings;
  const zones = new Map();
  return rules.map((rule) => {
    if (rule.policy === undefined) return undefined;
    const name = zoneName(rule);
    if (!zones.has(name))
      zones.set(name, createZone(rule, storeOptionsFor(storeOptions, name), settings));
    return zones.get(name);
  });
}

function createZone({ limiterOptions, policy, isPerPath }, storeOptions, settings) {
  const limiter = limiterFor({ limiterOptions: { ...storeOptions, ...limiterOptions } });
  const store = countingPlace(storeOptions, limiter);
  const limitOf = createLimitOf(limiterOptions.maxInInterval);
  return { limiter, policy, isPerPath, limitOf, store, namePolicies: createPolicyNaming(settings) };
}

/**
 * Neither the order of rules nor their limits are in it, so that a count outlives a change of these. Rules
 * without a zone differ in their patterns.
 */
function zoneName({ zone, pattern, isPerPath }) {
  const name =
    zone === undefined
      ? `rule:${hash(patternText(pattern)).slice(0, 16)}`
      : `zone:${escaped(zone)}`;
  return isPerPath ? `${name}:paths` : name;
}

/** Without what would be a part of the name, or of a Redis Cluster's. */
function escaped(zone) {
  return encodeURIComponent(zone);
}

/**
 * The options of a store in which several limiters stand side by side. What has no name is a limiter's own
 * anyway.
 */
function storeOptionsFor(storeOptions, name) {
  const { namespace, shared } = storeOptions;
  const own = { ...storeOptions };
  if (namespace !== undefined) own.namespace = `${namespace}:${name}`;
  if (shared !== undefined) own.shared = partOfRegion(shared, name);
  return own;
}

/** The id under which a limiter counts what `id` does at a path: no other path and id give the same. */
function bucketOf(normalPath, id) {
  const text = idToString(id);
  return normalPath.length > LONGEST_PATH
    ? `#${hash(normalPath)}${text}`
    : `${normalPath.length}:${normalPath}${text}`;
}

/** 43 characters. */
function hash(text) {
  return createHash('sha256').update(text).digest('base64url');
}

module.exports = { bucketOf, createZones, storeOptionsFor };
