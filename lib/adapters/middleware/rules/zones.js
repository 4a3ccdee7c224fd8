// The limiters behind rules: one for each zone, and its place in the store.
'use strict';

const { sha256 } = require('#platform');
const stores = require('#stores');
const { idToString } = require('../../../base/ids');
const { IS_INNER } = require('../../../base/internal-methods');
const { createPolicyNaming } = require('../headers');
const { createLimitOf, limiterFor, storeIdentity } = require('../limiters');
const { patternToString } = require('./match');

/** Longer paths are stored as a hash. */
const LONGEST_PATH = 128;

/** For each rule its zone, undefined without limits; rules that share a count have the same zone. */
function createZones(settings) {
  const { rules, storeOptions } = settings;
  const zones = new Map();
  const shadows = new Map();
  return rules.map((rule) => {
    if (rule.policy === undefined) return undefined;
    const name = rule.isShadow ? shadowName(rule, shadows) : zoneName(rule);
    if (!zones.has(name)) {
      zones.set(name, createZone(rule, storeOptionsFor(storeOptions, name), settings));
    }
    return zones.get(name);
  });
}

/** `policy` is that of read.js; with `isPerPath`, ids come from bucketOf. */
function createZone({ limiterOptions, policy, isPerPath, isShadow }, storeOptions, settings) {
  const limiter = limiterFor({
    limit: policy.limit,
    limiterOptions: { ...storeOptions, ...limiterOptions, [IS_INNER]: isShadow },
  });
  const store = storeIdentity(storeOptions, limiter);
  const limitOf = createLimitOf(policy.limit);
  const namePolicies = createPolicyNaming(settings);
  return { limiter, policy, isPerPath, isShadow, limitOf, store, namePolicies };
}

/**
 * Without the order of rules and their limits, so that counts survive a change of these. Rules without the
 * option zone are named by their patterns.
 */
function zoneName({ zone, pattern, isPerPath }) {
  const name =
    zone === undefined
      ? `rule:${hash(patternToString(pattern)).slice(0, 16)}`
      : `zone:${encodeURIComponent(zone)}`; // no separators, and no braces, which Redis Cluster hashes by
  return `${name}${isPerPath ? ':paths' : ''}`;
}

/** Several shadow rules may have one pattern, to compare their limits: `counts` has how many came before. */
function shadowName(rule, counts) {
  const name = `${zoneName(rule)}:shadow`;
  if (rule.zone !== undefined) return name;
  const before = counts.get(name) ?? 0;
  counts.set(name, before + 1);
  return before === 0 ? name : `${name}:${before}`;
}

/** The store options of one of several limiters in a store. A store without a name is never shared. */
function storeOptionsFor(storeOptions, name) {
  const { namespace, shared } = storeOptions;
  const own = { ...storeOptions };
  if (namespace !== undefined) own.namespace = `${namespace}:${name}`;
  if (shared !== undefined) own.shared = stores.shared.partOf(shared, name);
  return own;
}

/** The id that a limiter counts for `id` at a path: unique for the pair. */
function bucketOf(normalPath, id) {
  const string = idToString(id);
  return normalPath.length > LONGEST_PATH
    ? `#${hash(normalPath)}${string}`
    : `${normalPath.length}:${normalPath}${string}`;
}

/** 43 characters. */
function hash(string) {
  return sha256(string, 'base64url');
}

module.exports = { bucketOf, createZones, storeOptionsFor };
