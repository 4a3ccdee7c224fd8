// The option rules: finds the rules that apply to a request, and has their limiters decide.
'use strict';

const { UnknownCaller } = require('../caller');
const { andThen, orElse, together } = require('../maybe-async');
const { attemptAtCost, createCostOf, passOnStoreError } = require('../limiters');
const { blockedDecision, createBlocks } = require('./blocks');
const { NONE, createFinder } = require('./match');
const { formsOf } = require('./paths');
const { createTrials } = require('./shadow');
const { bucketOf, createZones } = require('./zones');

/**
 * `decide(req, res, report, reportTrials)` returns true if no rule limits the request, an UnknownCaller, or the
 * result of `report(decision, { id, rule, cost })`; or a promise of these. Callers are identified only if a rule
 * needs it.
 * `reportTrials(trials)` gets the Trials of the shadow rules in front of the rule that decides, if there are any.
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
  const rules = settings.rules.map((rule, index) => {
    return { ...rule, index, zone: zones[index], costOf: createCostOf(rule.cost) };
  });
  const find = createFinder(rules.map(({ pattern }) => pattern));
  const limited = settings.passOnStoreError
    ? passOnStoreError({ attempt: askLimiters }, reporter)
    : { attempt: askLimiters };
  // Without passOnStoreError a block that cannot be recorded is an error of the request.
  const startBlock = settings.passOnStoreError ? startBlockOrReport : blocks?.start;
  const trials = createTrials(reporter);

  function decide(req, res, report, reportTrials) {
    // HTTP/2 and Request pass on `post` as it is, and routers take it as POST.
    const targets = countableTargets(pathOf(req), String(req.method).toUpperCase());
    if (targets.length === 0) return true;
    const count = () =>
      andThen(identify(req, res), (caller) => {
        if (caller instanceof UnknownCaller) return caller;
        return askAll(questionsOn(targets, caller), req, res, report, reportTrials);
      });
    return targets.some(({ isLimitable }) => isLimitable) ? count() : passAnyway(count);
  }

  /** Nobody needs to know the caller of a request that only shadow rules count. */
  function passAnyway(count) {
    const counted = orElse(count, (error) => new UnknownCaller(error));
    return andThen(counted, (passes) => {
      if (passes instanceof UnknownCaller) trials.fail(passes.error);
      return true;
    });
  }

  /** From the index `first` on: the rule that decides, undefined if none does, and the shadow rules in front of it. */
  function search(first, target, group) {
    const shadows = [];
    let found = first;
    for (; found !== NONE && rules[found].isShadow; found = find(found + 1, target, group)) {
      shadows.push(rules[found]);
    }
    return { shadows, decider: rules[found] };
  }

  /** One for each path that rules may count; `first` is the first rule that matches. */
  function countableTargets(path, method) {
    const targets = [];
    for (const normal of formsOf(path)) {
      const target = { path, normal, method, first: 0, isLimitable: false };
      target.first = find(0, target);
      if (target.first === NONE) continue;
      const { shadows, decider } = search(target.first, target);
      target.isLimitable = decider !== undefined && !letsAllPass(decider);
      if (target.isLimitable || shadows.length > 0) targets.push(target);
    }
    return targets;
  }

  /** One for each zone, so that a request counts once in it. */
  function questionsOn(targets, { id, group }) {
    const questions = [];
    for (const target of targets) {
      const { shadows, decider } = search(find(target.first, target, group), target, group);
      for (const rule of decider === undefined ? shadows : [...shadows, decider]) {
        const isKnown = questions.some((question) => question.rule.zone === rule.zone);
        if (rule.zone === undefined || isKnown) continue;
        questions.push({ rule, id, path: target.normal });
      }
    }
    return questions;
  }

  function askAll(questions, req, res, report, reportTrials) {
    const shadows = questions.filter(({ rule }) => rule.isShadow);
    if (shadows.length === 0) return askEach(questions, req, res, report);
    const deciders = questions.filter(({ rule }) => !rule.isShadow);
    const tried = trials.tryOut(shadows, (question) => attempt(question, req, res, askLimiter));
    const passes = askEach(deciders, req, res, report);
    return andThen(together([tried, passes]), ([known, hasPassed]) => {
      reportTrials(known);
      return hasPassed;
    });
  }

  function askEach(questions, req, res, report) {
    if (questions.length === 0) return true;
    const [question, ...others] = questions;
    const passes = ask(question, req, res, report);
    if (others.length === 0) return passes;
    return andThen(passes, (hasPassed) => hasPassed && askEach(others, req, res, report));
  }

  function ask(question, req, res, report) {
    return attempt(question, req, res, (attempted) => {
      return andThen(limited.attempt(attempted), (decision) => report(decision, attempted));
    });
  }

  /** `decide` gets the rule, the id, its bucket in the zone, the cost and the limit by request, undefined without. */
  function attempt({ rule, id, path }, req, res, decide) {
    const { isPerPath, limitOf } = rule.zone;
    const bucket = isPerPath ? bucketOf(path, id) : id;
    return andThen(rule.costOf?.(req, res), (cost) => {
      return andThen(limitOf?.(req, res), (max) => decide({ rule, id, bucket, cost, max }));
    });
  }

  function askLimiters(attempted) {
    const { rule, id, bucket, max } = attempted;
    const limit = max ?? rule.policy.windows[0].maxInInterval;
    // As under a rule without limits, no block refuses those who are exempt.
    if (blocks === undefined || limit === Number.POSITIVE_INFINITY) return askLimiter(attempted);
    return andThen(blocks.find(id), (found) => {
      if (!found.allowed) return blockedDecision(found, rule.policy, max);
      return andThen(askLimiter(attempted), (decision) => {
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

  /** Without the zones with perPath, whose paths are not known. */
  const zonesById = new Set(zones.filter((zone) => zone !== undefined && !zone.isPerPath));

  async function resetKey(id) {
    const limiters = [...zonesById].map(({ limiter }) => limiter);
    await Promise.all([...limiters, ...(blocks ? [blocks] : [])].map((one) => one.clear(id)));
  }

  /** Those whose counts refuse requests. */
  function limitersById() {
    return [...zonesById].filter(({ isShadow }) => !isShadow).map(({ limiter }) => limiter);
  }

  return { decide, resetKey, limitersById };
}

/** For every group. */
function letsAllPass({ pattern, zone }) {
  return pattern.groups === undefined && zone === undefined;
}

/**
 * Whether the decision blocks the id on every rule. A refusal by a block of the zone counts as well: no block on
 * every rule was found, so its record was lost, or the block was started by a rule that limits it to the zone. A cost
 * that can never pass blocks nobody.
 */
function isBlocking({ blocksEverywhere }, { allowed, timeLeft }) {
  return blocksEverywhere && !allowed && timeLeft !== Number.POSITIVE_INFINITY;
}

function askLimiter({ rule: { zone }, bucket, cost, max }) {
  if (cost === undefined) return zone.limiter.attempt(bucket, undefined, max);
  return attemptAtCost(zone.limiter, bucket, { cost }, max);
}

module.exports = { createRules };
