// Finds the rule that decides on a request, and has it decide.
'use strict';

const { UnknownCaller } = require('../authentication');
const { isPromise, andThen } = require('../maybe-async');
const { passOnStoreError } = require('../pass-on-store-error');
const { blockedDecision, createBlocks } = require('./blocks');
const { NONE, createFinder } = require('./finder');
const { formsOf } = require('./forms');
const { bucketOf, createZones } = require('./zones');

/**
 * `decide(req, res, report)` gives true where no rule limits the request, an UnknownCaller, or what
 * `report(decision, id, place)` makes of the decision of its rule; or a promise of any of these. Nobody is
 * authenticated where no rule would ask who it is.
 *
 * A path that may stand for several is decided on by the rules of all: the request passes where each
 * lets it pass. So neither an exception nor a loose rule is a way around another.
 *
 * @param {object} settings as of options.js
 * @param {{ identify: Function, notices: object, pathOf: Function }} parts `pathOf(req)` as of path.js
 */
function createRules(settings, { identify, notices, pathOf }) {
  const zones = createZones(settings);
  const blocks = createBlocks(settings);
  const rules = settings.rules.map((rule, i) => ({ ...rule, zone: zones[i] }));
  const find = createFinder(rules.map(({ pattern }) => pattern));
  const limited = settings.passOnStoreError
    ? passOnStoreError({ attempt: askLimiters }, notices)
    : { attempt: askLimiters };
  // Without passOnStoreError a block that cannot be recorded is an error of the request.
  const startBlock = settings.passOnStoreError ? startBlockOrTell : blocks?.start;

  function decide(req, res, report) {
    const targets = limitableTargets(pathOf(req), req.method);
    if (targets.length === 0) return true;
    return andThen(identify(req, res), (caller) => {
      if (caller instanceof UnknownCaller) return caller;
      return askEach(questionsOn(targets, caller), req, res, report);
    });
  }

  /** One for each form of the path on which some rule may limit somebody; `first` is the first that matches. */
  function limitableTargets(path, method) {
    const targets = [];
    for (const normal of formsOf(path)) {
      const target = { path, normal, method, first: NONE };
      target.first = find(0, target);
      if (target.first !== NONE && !letsAllPass(rules[target.first])) targets.push(target);
    }
    return targets;
  }

  /** One for each zone, so that no request counts twice in it; a rule on trial takes no other's place. */
  function questionsOn(targets, { id, group }) {
    const questions = [];
    for (const target of targets) {
      const found = find(target.first, target, group);
      if (found === NONE || rules[found].zone === undefined) continue;
      const question = { rule: rules[found], id, path: target.normal };
      const same = questions.findIndex(({ rule }) => rule.zone === question.rule.zone);
      if (same === -1) questions.push(question);
      else if (questions[same].rule.isShadow) questions[same] = question;
    }
    return questions;
  }

  function askEach(questions, req, res, report) {
    if (questions.length === 0) return true;
    const [question, ...others] = questions;
    const passes = ask(question, req, res, report);
    if (others.length === 0) return passes;
    return andThen(passes, (hasPassed) => hasPassed && askEach(others, req, res, report));
  }

  function ask({ rule, id, path }, req, res, report) {
    const { isPerPath, limitOf } = rule.zone;
    const bucket = isPerPath ? bucketOf(path, id) : id;
    return andThen(limitOf?.(req, res), (max) => {
      return andThen(limited.attempt({ rule, id, bucket, max }), (decision) => {
        return report(decision, id, rule);
      });
    });
  }

  function askLimiters({ rule, id, bucket, max }) {
    if (blocks === undefined) return rule.zone.limiter.attempt(bucket, max);
    return andThen(blocks.find(id), (refusal) => {
      if (refusal !== undefined) return blockedDecision(refusal, rule.policy, max);
      return andThen(rule.zone.limiter.attempt(bucket, max), (decision) => {
        if (!isBlocking(rule, decision)) return decision;
        return andThen(startBlock(id, rule.zone, bucket, decision), () => decision);
      });
    });
  }

  /** With passOnStoreError the request is refused all the same: that decision was made. */
  function startBlockOrTell(id, zone, bucket, decision) {
    const tell = (error) => {
      notices.error('ROLLGATE_BLOCK_LOST', 'a client could not be blocked on every rule.', error);
    };
    try {
      const started = blocks.start(id, zone, bucket, decision);
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

/**
 * A rule on trial blocks nobody elsewhere. Refusals during a block count as well: as no block on every rule
 * was found, its record was lost, or the block was begun by a rule that keeps it to its zone.
 */
function isBlocking({ blocksEverywhere, isShadow }, { allowed }) {
  return blocksEverywhere && !isShadow && !allowed;
}

module.exports = { createRules };
