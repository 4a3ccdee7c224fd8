// The option rules: finds the rules that apply to a request, and has their limiters decide.
'use strict';

const { UnknownCaller, createIdentify } = require('../caller');
const { attemptAt, countOf, createCostOf, passOnStoreError } = require('../limiters');
const { andThen, orElse, together } = require('../maybe-async');
const { blockedDecision, createBlocks } = require('./blocks');
const { NONE, createFinder } = require('./match');
const { formsOf } = require('./paths');
const { createTrials } = require('./shadow');
const { bucketOf, createZones } = require('./zones');

/**
 * Counts requests by rules. Callers are identified only if a rule needs it.
 *
 * If a path may resolve to several paths, the request must pass the rules of each. So neither an exception nor
 * a loose rule helps to evade another rule.
 *
 * A *question* is a rule with limits, and whose count at which path it asks for.
 */
class Rules {
  #rules;
  #find;
  /** Those that count by id: without the zones with perPath, whose paths are not known. */
  #zonesById;
  #blocks;
  #attempt;
  #trials;
  #identify;
  #pathOf;
  #publisher;

  /**
   * @param {object} settings see ../options.js
   * @param {object} parts `pathOf(req)` as in paths.js
   */
  constructor(settings, { logger, publisher, pathOf }) {
    const zones = createZones(settings);
    this.#rules = settings.rules.map((rule, index) => {
      return { ...rule, index, zone: zones[index], costOf: createCostOf(rule.cost) };
    });
    this.#find = createFinder(this.#rules.map(({ pattern }) => pattern));
    this.#zonesById = [...new Set(zones)].filter((zone) => zone !== undefined && !zone.isPerPath);
    this.#blocks = createBlocks(settings, logger);
    this.#attempt = passOnStoreError(settings, logger, (asked) => this.#askLimiters(asked));
    this.#trials = createTrials(logger);
    this.#identify = createIdentify(settings);
    this.#pathOf = pathOf;
    this.#publisher = publisher;
  }

  /** As createMiddleware needs it. */
  count(request) {
    const { req, res } = request;
    // HTTP/2 and Request pass on `post` as it is, and routers take it as POST.
    const targets = this.#countableTargets(this.#pathOf(req), String(req.method).toUpperCase());
    if (targets.length === 0) return true;
    const count = () =>
      andThen(this.#identify(req, res), (caller) => {
        return this.#askAll(this.#questionsOn(targets, caller), request);
      });
    if (targets.some(({ isLimitable }) => isLimitable)) return count();
    // Nobody needs to know the caller of a request that only shadow rules count.
    const fail = (error) => this.#trials.fail(error instanceof UnknownCaller ? error.error : error);
    return andThen(orElse(count, fail), () => true);
  }

  /** One for each path that rules may count; `first` is the first rule that matches. */
  #countableTargets(path, method) {
    const targets = [];
    for (const normal of formsOf(path)) {
      const target = { path, normal, method, first: 0, isLimitable: false };
      target.first = this.#find(0, target);
      if (target.first === NONE) continue;
      const { shadows, decider } = this.#search(target.first, target);
      target.isLimitable = decider !== undefined && !letsAllPass(decider);
      if (target.isLimitable || shadows.length > 0) targets.push(target);
    }
    return targets;
  }

  /** From the index `first` on: the rule that decides, undefined if none does, and the shadow rules in front of it. */
  #search(first, target, group) {
    const shadows = [];
    let found = first;
    while (found !== NONE && this.#rules[found].isShadow) {
      shadows.push(this.#rules[found]);
      found = this.#find(found + 1, target, group);
    }
    return { shadows, decider: this.#rules[found] };
  }

  /** One for each zone, so that a request counts once in it. */
  #questionsOn(targets, { id, group }) {
    const questions = [];
    for (const target of targets) {
      const first = this.#find(target.first, target, group);
      const { shadows, decider } = this.#search(first, target, group);
      for (const rule of decider === undefined ? shadows : [...shadows, decider]) {
        const isKnown = questions.some((question) => question.rule.zone === rule.zone);
        if (rule.zone === undefined || isKnown) continue;
        questions.push({ rule, id, path: target.normal });
      }
    }
    return questions;
  }

  #askAll(questions, request) {
    const shadows = questions.filter(({ rule }) => rule.isShadow);
    if (shadows.length === 0) return this.#askEach(questions, request);
    const deciders = questions.filter(({ rule }) => !rule.isShadow);
    const tried = this.#trials.tryOut(shadows, (question) =>
      onTerms(question, request, askLimiter),
    );
    const passes = this.#askEach(deciders, request);
    return andThen(together([tried, passes]), ([trials, hasPassed]) => {
      this.#publisher.publishTrials(trials, request);
      return hasPassed;
    });
  }

  /** From the question at `first` on. */
  #askEach(questions, request, first = 0) {
    if (first === questions.length) return true;
    const passes = onTerms(questions[first], request, (asked) => {
      const { id, rule, cost } = asked;
      return andThen(this.#attempt(asked), (decision) => {
        return this.#publisher.publish(decision, id, rule.zone, cost, request);
      });
    });
    if (first + 1 === questions.length) return passes;
    return andThen(passes, (hasPassed) => {
      return hasPassed && this.#askEach(questions, request, first + 1);
    });
  }

  #askLimiters(asked) {
    const { rule, id, bucket, limits } = asked;
    // As under a rule without limits, no block refuses those who are exempt.
    if (this.#blocks === undefined || limits === Number.POSITIVE_INFINITY) return askLimiter(asked);
    return andThen(this.#blocks.find(id), (found) => {
      if (!found.allowed) return blockedDecision(found, rule.policy, limits);
      return andThen(askLimiter(asked), (decision) => {
        if (!isBlocking(rule, decision)) return decision;
        return andThen(this.#blocks.start(id, rule.zone, bucket, decision), () => decision);
      });
    });
  }

  async resetKey(id) {
    const counts = this.#zonesById.map(({ limiter }) => limiter);
    if (this.#blocks !== undefined) counts.push(this.#blocks);
    await Promise.all(counts.map((one) => one.clear(id)));
  }

  /** Only of zones whose counts refuse requests. */
  getKey(id) {
    const deciders = this.#zonesById.filter(({ isShadow }) => !isShadow);
    return countOf(
      deciders.map(({ limiter }) => limiter),
      id,
    );
  }
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

/** `decide` gets a question with its bucket in the zone, the cost, and the limits by request, undefined without. */
function onTerms({ rule, id, path }, { req, res }, decide) {
  const { isPerPath, limitOf } = rule.zone;
  const bucket = isPerPath ? bucketOf(path, id) : id;
  return andThen(rule.costOf?.(req, res), (cost) => {
    return andThen(limitOf?.(req, res), (limits) => decide({ rule, id, bucket, cost, limits }));
  });
}

function askLimiter({ rule: { zone }, bucket, cost, limits }) {
  return attemptAt(zone.limiter, bucket, cost, limits);
}

module.exports = { Rules };
