// Reads the option rules: checks every rule, and that the rules of one zone agree.
'use strict';

const costs = require('../../../options/costs');
const { optionError, optionTypeError, rangeError, typeError } = require('../../../base/errors');
const limiter = require('../../../limiter/options');
const {
  readBoolean,
  readList,
  readObject,
  readString,
  rejectUnknownOptions,
  withoutUndefined,
} = require('../../../options/values');
const { isWellFormed } = require('../../../base/ids');
const {
  ANY_WINDOW_MS,
  LIMIT_NAMES,
  RULE_OPTIONS,
  STORE_OPTIONS,
  assertIsCost,
  comesByRequest,
  pick,
  readRequestCost,
  readRequestLimits,
} = require('../limiter-options');
const { assertReachable, readPattern } = require('./match');

const PATTERN_NAMES = ['path', 'method', 'group'];
const OWN_NAMES = ['cost', 'zone', 'perPath', 'shadow', 'blockEverywhere'];
const RULE_NAMES = [...PATTERN_NAMES, ...OWN_NAMES, ...RULE_OPTIONS];

/** Options that have no effect without limits. */
const NEED_LIMITS = [...OWN_NAMES, ...RULE_OPTIONS.filter((name) => !LIMIT_NAMES.includes(name))];

/**
 * The rules, and the options that all their limiters have in common. The `policy` of a rule has its
 * `limiterOptions`, checked and with defaults; both are undefined if the rule lets requests pass.
 *
 * @param {object} given options of rateLimit(), none of them undefined
 * @param {object} own the middleware's own options, checked
 */
function readRules(given, own) {
  const storeOptions = pick(given, STORE_OPTIONS);
  // These belong to each rule.
  const anyLimits = { interval: ANY_WINDOW_MS, maxInInterval: 1, countBlocked: false };
  limiter.readLimiterOptions({ ...storeOptions, ...anyLimits });
  const list = readList('rules', given.rules, 'a list of at least one rule');
  const rules = list.map((rule, i) => readInPlace(`rules[${i}]`, () => readRule(rule, i, own)));
  assertReachable(rules, own.authenticate !== undefined);
  assertZonesAgree(rules);
  return { rules, storeOptions };
}

/** Adds the place of the rule to error messages. */
function readInPlace(place, read) {
  try {
    return read();
  } catch (error) {
    if (error.code !== 'ERR_ROLLGATE_OPTION' || error.message.includes(place)) throw error;
    const makeError = error instanceof RangeError ? rangeError : typeError;
    throw makeError(error.code, `in ${place}: ${error.message}`);
  }
}

function readRule(rule, i, own) {
  const place = `rules[${i}]`;
  rejectUnknownOptions(readObject(place, rule), RULE_NAMES, { place });
  const given = withoutUndefined(pick(rule, RULE_NAMES));
  const common = { pattern: readPattern(given), ...readFlags(given) };
  if (LIMIT_NAMES.some((name) => name in given)) return { ...common, ...readPolicy(given, own) };
  const needless = NEED_LIMITS.find((name) => name in given);
  if (needless === undefined) return { ...common, limiterOptions: undefined, policy: undefined };
  const why = 'requires limits; without limits the rule allows everything';
  throw optionError(`${place}.${needless}`, why);
}

function readFlags({ cost, zone, perPath, shadow, blockEverywhere, blockFor }) {
  const isShadow = readBoolean('shadow', shadow, false);
  const blocksEverywhere = readBoolean('blockEverywhere', blockEverywhere, false);
  if (blocksEverywhere && blockFor === undefined) {
    throw optionTypeError('blockFor', "a number of ms with 'blockEverywhere'", blockFor);
  }
  return {
    cost: readRequestCost('cost', cost),
    zone: readZone(zone),
    isPerPath: readBoolean('perPath', perPath, false),
    isShadow,
    blocksEverywhere: blocksEverywhere && !isShadow,
  };
}

function readZone(zone) {
  if (zone === undefined) return undefined;
  const isGood = (string) => string !== '' && isWellFormed(string);
  return readString('zone', zone, 'a non-empty string of well-formed Unicode', isGood);
}

function readPolicy(given, own) {
  const { limit, limiterOptions } = readRequestLimits(pick(given, RULE_OPTIONS), own);
  const checked = limiter.readLimiterOptions(limiterOptions);
  assertIsCost(given.cost, (cost) => costs.readCost(cost, checked));
  const { windows, minDifference, countBlocked, algorithm, blockFor } = checked;
  if (limit === 0 && blockFor.length > 1) {
    const expected = 'one length with a limit of 0, which records nothing';
    throw optionTypeError('blockFor', expected, given.blockFor);
  }
  const ofRequest = comesByRequest(limit) ? limit : undefined;
  return {
    limiterOptions,
    policy: { windows, limit: ofRequest, minDifference, countBlocked, algorithm, blockFor },
  };
}

/** All values are primitive, but for the windows, the lengths of blocks, and functions as limits. */
function isSamePolicy(a, b) {
  const flat = ({ windows, blockFor, ...others }) => [
    windows.length,
    ...windows.flatMap(({ interval, maxInInterval, name, calendar }) => [
      ...[interval, maxInInterval, name],
      ...[calendar?.unit, calendar?.timeZone, calendar?.startsOn],
    ]),
    ...blockFor,
    ...Object.values(others),
  ];
  const [all, same] = [flat(a), flat(b)];
  return all.length === same.length && all.every((value, i) => value === same[i]);
}

/** Shadow rules have counts of their own, so their limits may differ from those of the rules that decide. */
function assertZonesAgree(rules) {
  for (const [i, { zone, policy, isShadow }] of rules.entries()) {
    if (zone === undefined) continue;
    const place = rules.findIndex((rule) => rule.zone === zone && rule.isShadow === isShadow);
    if (isSamePolicy(policy, rules[place].policy)) continue;
    const expected = `the limits, countBlocked, algorithm and blockFor of rules[${place}]`;
    throw optionError(`rules[${i}].zone`, `expected ${expected}, which is of the same zone`);
  }
}

module.exports = { readRules };
