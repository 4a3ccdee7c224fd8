// Finds the rule that decides on a request, and has it decide.
'use strict';

const { UnknownCaller } = require('../authentication');
const { isPromise } = require('../is-promise');
const { passOnStoreError } = require('../pass-on-store-error');
const { blockedDecision, createBlocks } = require('./blocks');
const { NONE, createFinder } = require('./finder');
const { normalForm, pathOf } = require('./path');
const { whenKnown } = require('./when-known');
const { bucketOf, createZones } = require('./zones');

/**
 * `decide(req, res, report)` gives true where no rule limits the request, an UnknownCaller, or what
 * `report(decision, id, place)` makes of the decision of its rule; or a promise of any of these. Nobody is
 * authenticated where no rule would ask who it is.
 *
 * @param {object} settings as of options.js
 * @param {{ identify: Function, notices: object }} parts
 */
function createRules(settings, { identify, notices }) {
  const zones = createZones(settings);
  const blocks = createBlocks(settings);
  const rules = settings.rules.map((rule, i) => ({ ...rule, zone: zones[i] }));
  const find = createFinder(rules.map(({ pattern }) => pattern));
  const limited = settings.passOnStoreError
    ? passOnStoreError({ attempt: askLimiters }, notices)
    : { attempt: askLimiters };
  const startBlock = settings.passOnStoreError ? startBlockOrTell : blocks?.start;

  function decide(req, res, report) {
    const path = pathOf(req);
    const target = { path, normal: normalForm(path), method: req.method };
    const first = find(0, target);
    if (first === NONE || letsAllPass(rules[first])) return true;
    return whenKnown(identify(req, res), (caller) => {
      if (caller instanceof UnknownCaller) return caller;
      const found = find(first, target, caller.group);
      if (found === NONE || rules[found].zone === undefined) return true;
      return ask({ rule: rules[found], id: caller.id, path: target.normal }, req, res, report);
    });
  }

  function ask({ rule, id, path }, req, res, report) {
    const { isPerPath, limitOf } = rule.zone;
    const bucket = isPerPath ? bucketOf(path, id) : id;
    return whenKnown(limitOf?.(req, res), (max) => {
      return whenKnown(limited.attempt({ rule, id, bucket, max }), (decision) => {
        return report(decision, id, rule);
      });
    });
  }

  function askLimiters({ rule, id, bucket, max }) {
    if (blocks === undefined) return rule.zone.limiter.attempt(bucket, max);
    return whenKnown(blocks.find(id), (refusal) => {
      if (refusal !== undefined) return blockedDecision(refusal, rule.policy, max);
      return whenKnown(rule.zone.limiter.attempt(bucket, max), (decision) => {
        if (!beginsBlock(rule, decision)) return decision;
        return whenKnown(startBlock(id, rule.zone, bucket), () => decision);
      });
    });
  }

  /** The request is refused all the same, which no failure changes. */
  function startBlockOrTell(id, zone, bucket) {
    const tell = (error) => {
      notices.error('ROLLGATE_BLOCK_LOST', 'a client could not be blocked on every rule.', error);
    };
    try {
      const started = blocks.start(id, zone, bucket);
      return isPromise(started) ? started.then(undefined, tell) : started;
    } catch (error) {
      return tell(error);
    }
  }

  async function resetKey(id) {
    await Promise.all([...limitersById(), ...(blocks ? [blocks] : [])].map((one) => one.clear(id)));
  }

  /** Of counts apart for each path nobody knows which there are. */
  function limitersById() {
    const byId = zones.filter((zone) => zone !== undefined && !zone.isPerPath);
    return [...new Set(byId.map(({ limiter }) => limiter))];
  }

  return { decide, resetKey, limitersById };
}

/** Whatever the group. */
function letsAllPass({ pattern, zone }) {
  return pattern.groups === undefined && zone === undefined;
}

/** A rule on trial blocks nobody elsewhere. */
function beginsBlock({ blocksEverywhere, isShadow }, { allowed, blockedBy }) {
  return blocksEverywhere && !isShadow && !allowed && blockedBy !== 'block';
}

module.exports = { createRules };
