// The option rules: finds the rules that apply to a request, and has their limiters decide.
'use strict';

const { UnknownCaller } = require('../authentication');
const { andThen, orElse } = require('../maybe-async');
const { passOnStoreError } = require('../limiters');
const { blockedDecision, createBlocks } = require('./blocks');
const { NONE, createFinder } = require('./match');
const { formsOf } = require('./paths');
const { bucketOf, createZones } = require('./zones');

/**
 * `decide(req, res, report)` returns true if no rule limits the request, an UnknownCaller, or the result of
 * `report(decision, id, rule)`; or a promise of these. Callers are identified only if a rule needs it.
 *
 * If a path may resolve to several paths, the request must pass the rules of each. So neither an exception nor
 * a loose rule helps to evade another rule.
 *
 * @param {object} settings see ../options.js
 * @param {{ identify: Function, reporter: object, pathOf: Function }} parts `pathOf(req)` as in paths.js
 */
function createRules(settings, { identify, reporter, pathOf }) {
  const zones = createZones(settings);
  const blocks = createBlocks(settings);
  const rules = settings.rules.map((rule, i) => ({ ...rule, zone: zones[i] }));
  const find = createFinder(rules.map(({ pattern }) => pattern));
  const limited = settings.passOnStoreError
    ? passOnStoreError({ attempt: askLimiters }, reporter)
    : { attempt: askLimiters };
  // Without passOnStoreError a block that cannot be recorded is an error of the request.
  const startBlock = settings.passOnStoreError ? startBlockOrReport : blocks?.start;

  function decide(req, res, report) {
    const targets = limitableTargets(pathOf(req), req.method);
    if (targets.length === 0) return true;
    return andThen(identify(req, res), (caller) => {
      if (caller instanceof UnknownCaller) return caller;
      return askEach(questionsOn(targets, caller), req, res, report);
    });
  }

  /** One for each path that a rule may limit; `first` is the first rule that matches. */
  function limitableTargets(path, method) {
    const targets = [];
    for (const normal of formsOf(path)) {
      const target = { path, normal, method, first: NONE };
      target.first = find(0, target);
      if (target.first !== NONE && !letsAllPass(rules[target.first])) targets.push(target);
    }
    return targets;
  }

  /** One for each zone, so that a request counts once in it; a shadow rule never replaces another. */
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

  /** With passOnStoreError the request stays blocked, because that decision was made. */
  function startBlockOrReport(id, zone, bucket, decision) {
    const reportError = (error) => {
      reporter.error('ROLLGATE_BLOCK_LOST', 'a client could not be blocked on every rule.', error);
    };
    return orElse(() => blocks.start(id, zone, bucket, decision), reportError);
  }

  async function resetKey(id) {
    await Promise.all([...limitersById(), ...(blocks ? [blocks] : [])].map((one) => one.clear(id)));
  }

  /** Without the zones with perPath, whose paths are not known. */
  function limitersById() {
    const byId = zones.filter((zone) => zone !== undefined && !zone.isPerPath);
    return [...new Set(byId.map(({ limiter }) => limiter))];
  }

  return { decide, resetKey, limitersById };
}

/** For every group. */
function letsAllPass({ pattern, zone }) {
  return pattern.groups === undefined && zone === undefined;
}

/**
 * Whether the decision blocks the id on every rule; a shadow rule never does. A refusal by a block of the zone
 * counts as well: no block on every rule was found, so its record was lost, or the block was started by a rule
 * that limits it to the zone.
 */
function isBlocking({ blocksEverywhere, isShadow }, { allowed }) {
  return blocksEverywhere && !isShadow && !allowed;
}

module.exports = { createRules };
