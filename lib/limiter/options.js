// The options of a limiter and of its calls: checked once, in the form that the rest of lib trusts.
'use strict';

const { readAlgorithm, readCountBlocked } = require('../options/algorithms');
const { LONGEST_MS } = require('../base/calendar');
const { OF_CALENDARS, readCalendar } = require('../options/calendars');
const { smallestMax } = require('../options/costs');
const { optionError, optionRangeError, show, typeError } = require('../base/errors');
const { Plans } = require('./plans');
const { IS_INNER } = require('../base/internal-methods');
const {
  readClock,
  readCount,
  readInterval,
  readList,
  readMaxKeys,
  readNumber,
  readObject,
  readString,
  rejectUnknownOptions,
} = require('../options/values');
const {
  STORE_NAMES,
  assertFitsLease,
  readLease,
  readLocalRefusals,
  readStoreOptions,
} = require('../stores/options');

const LIMIT_NAMES = ['interval', 'maxInInterval', 'minDifference'];
const NAMES_IN_LIMITS = [...LIMIT_NAMES, 'windowMs', 'limit', 'name', 'calendar', ...OF_CALENDARS];
const LIMITER_NAMES = [
  ...LIMIT_NAMES,
  'limits',
  'countBlocked',
  'algorithm',
  'blockFor',
  'clock',
  'maxKeys',
  ...STORE_NAMES,
];

/** The options that only the middleware has. */
const MIDDLEWARE_NAMES =
  'authenticate cost handler headers identifier ipv6Subnet keyGenerator legacyHeaders limit limiter logger max message ' +
  'onAuthError passOnStoreError problemDetails requestPropertyName requestWasSuccessful rules skip ' +
  'skipFailedRequests skipSuccessfulRequests standardHeaders statusCode store trustProxy validate windowMs';

const IN_LIMITS = "one of the limits: limits: [{ calendar: 'month', maxInInterval }]";

/** A limiter's names of options that the middleware has under others. */
const OWN_NAME_OF = { windowMs: 'interval', limit: 'maxInInterval', max: 'maxInInterval' };

/** Why a limiter rejects them, by name. */
function rejectedOptions() {
  const where = "belongs to the middleware, which is require('rollgate').rateLimit";
  const reasonFor = (name) =>
    name in OWN_NAME_OF ? `${where}; a limiter has '${OWN_NAME_OF[name]}'` : where;
  const ofLimits = ['calendar', ...OF_CALENDARS].map((name) => [name, `belongs to ${IN_LIMITS}`]);
  const ofMiddleware = MIDDLEWARE_NAMES.split(' ').map((name) => [name, reasonFor(name)]);
  return Object.fromEntries([...ofMiddleware, ...ofLimits]);
}

function readDuration(name, value) {
  const isInRange = (ms) => Number.isFinite(ms) && ms >= 0;
  return readNumber(name, value, 'a finite number of ms >= 0', isInRange);
}

function readMinDifference(name, value) {
  return value === undefined ? 0 : readDuration(name, value);
}

function readLimit({ interval, maxInInterval, minDifference }) {
  return {
    interval: readInterval('interval', interval),
    maxInInterval: readCount('maxInInterval', maxInInterval),
    minDifference: readMinDifference('minDifference', minDifference),
  };
}

function readLimits(limits, algorithm) {
  const read = readList('limits', limits, 'a list of at least one limit').map(readLimitOfList);
  const calendar = read.findIndex((limit) => limit.calendar !== undefined);
  if (calendar !== -1 && algorithm !== 'fixed-window') {
    throw optionError(`limits[${calendar}].calendar`, "requires algorithm 'fixed-window'");
  }
  for (const [i, { name }] of read.entries()) {
    const first = read.findIndex((limit) => limit.name === name);
    if (name === undefined || first === i) continue;
    const what = `expected a name of its own, got ${show(name)}, the name of limits[${first}]`;
    throw optionError(`limits[${i}].name`, what);
  }
  return read;
}

/** `windowMs` and `limit` are other names of two options, and come first, as in the middleware. */
function readLimitOfList(given, i) {
  const place = `limits[${i}]`;
  rejectUnknownOptions(readObject(place, given), NAMES_IN_LIMITS, { place });
  const { minDifference, name } = given;
  return {
    ...readWindow(place, given),
    maxInInterval: readEither(place, given, ['limit', 'maxInInterval'], readCount),
    minDifference: readMinDifference(`${place}.minDifference`, minDifference),
    name: readName(`${place}.name`, name),
  };
}

const INTERVAL_NAMES = ['windowMs', 'interval'];

/** An interval, or a calendar; the interval of a calendar is the longest time in which its window can matter. */
function readWindow(place, given) {
  const isGiven = (name) => given[name] !== undefined;
  if (!isGiven('calendar')) {
    const other = OF_CALENDARS.find(isGiven);
    if (other !== undefined) throw optionError(`${place}.${other}`, "requires 'calendar'");
    return { interval: readEither(place, given, INTERVAL_NAMES, readInterval) };
  }
  const other = INTERVAL_NAMES.find(isGiven);
  if (other !== undefined) throw optionError(`${place}.${other}`, "conflicts with 'calendar'");
  const calendar = readCalendar(place, given);
  return { interval: LONGEST_MS[calendar.unit], calendar };
}

/** Both are checked if both are given; if neither is, the error names the last. */
function readEither(place, given, names, read) {
  const values = names.map((name) => [`${place}.${name}`, given[name]]);
  const used = values.filter(([, value]) => value !== undefined);
  const [first] = (used.length > 0 ? used : values.slice(-1)).map((value) => read(...value));
  return first;
}

/** No control characters, which would break logs, and no lone surrogates. */
const PRINTABLE = /^[^\p{Cc}\p{Cs}]+$/u;

function readName(place, name) {
  if (name === undefined) return undefined;
  const expected = 'a non-empty string of printable characters, not __proto__';
  return readString(
    place,
    name,
    expected,
    (given) => PRINTABLE.test(given) && given !== '__proto__',
  );
}

/** `limits` replaces the other three, which must be valid anyway. */
function readLimitsOf({ limits, interval, maxInInterval, minDifference }, algorithm) {
  if (interval !== undefined) readInterval('interval', interval);
  if (maxInInterval !== undefined) readCount('maxInInterval', maxInInterval);
  readMinDifference('minDifference', minDifference);
  return readLimits(limits, algorithm);
}

/** The part of checked options that comes from the limits. minDifference is the largest of them. */
function policyOf(limits) {
  const windows = limits.map(({ interval, maxInInterval, name, calendar }) => ({
    interval,
    maxInInterval,
    name,
    calendar,
  }));
  return {
    windows,
    plans: new Plans(windows),
    smallestMax: smallestMax(windows),
    isWeighted: windows.some(({ name }) => name !== undefined),
    minDifference: limits.reduce((most, { minDifference }) => Math.max(most, minDifference), 0),
  };
}

/** The checked options of a limiter with other limits of the same shape. `limits` is the user's list. */
function withLimits(checked, limits) {
  const { windows, algorithm } = checked;
  const read = readLimits(limits, algorithm);
  if (read.length !== windows.length) {
    const expected = windows.length === 1 ? 'one limit' : `${windows.length} limits`;
    throw optionError('limits', `expected ${expected}, as the limiter has, got ${read.length}`);
  }
  for (const [i, { name, calendar }] of read.entries()) {
    assertStays('name', i, name, windows[i].name);
    assertStays('calendar', i, calendar?.unit, windows[i].calendar?.unit);
  }
  const next = { ...checked, ...policyOf(read) };
  if (next.lease !== undefined) assertFitsLease(next.lease, next);
  return next;
}

function assertStays(option, i, value, own) {
  if (value === own) return;
  const expected = own === undefined ? `no ${option}` : show(own);
  const what = `expected ${expected}, as the limiter has it, got ${show(value)}`;
  throw optionError(`limits[${i}].${option}`, what);
}

/** Checks the options of a limiter. */
function readLimiterOptions(options) {
  readObject('options', options);
  rejectUnknownOptions(options, LIMITER_NAMES, { instead: rejectedOptions });
  const { clock, maxKeys } = options;
  const algorithm = readAlgorithm(options.algorithm);
  readClock(clock);
  const countBlocked = readCountBlocked(options.countBlocked, algorithm);
  const blockFor = readBlockFor(options.blockFor);
  const limits =
    options.limits === undefined ? [readLimit(options)] : readLimitsOf(options, algorithm);
  const checked = {
    ...policyOf(limits),
    countBlocked,
    algorithm,
    blockFor,
    isInner: options[IS_INNER] === true,
    maxKeys: readMaxKeys(maxKeys),
    clock,
    ...readStoreOptions(options),
    localRefusals: readLocalRefusals(options.localRefusals, { countBlocked, blockFor }),
  };
  return { ...checked, lease: readLease(options.lease, checked) };
}

/** Checks the names of the options of one call. */
function readCallOptions(place, options, names) {
  readObject(place, options);
  for (const name in options) {
    // Also an inherited one, which is none to rejectUnknownOptions.
    if (!names.includes(name)) return rejectUnknownOptions(options, names, { place });
  }
  return undefined;
}

/** The methods of rolling-rate-limiter take no options: limits that they ignored would let calls pass. */
function rejectOptions(method, [options]) {
  if (options === undefined) return;
  const expected = `${method}: expected no options, which attempt and peek take`;
  throw typeError('ERR_ROLLGATE_OPTION', `${expected}, got ${show(options)}`);
}

/** How long `block` blocks an id, in ms. */
function readBlock(ms) {
  return readDuration('block', ms);
}

/** The store keeps the number of an id's blocks in a byte. */
const MOST_LENGTHS = 255;

/** @returns {number[]} the lengths of the first block, the second and so on, in ms; empty by default */
function readBlockFor(value) {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return [readInterval('blockFor', value)];
  const expected = `a number of ms > 0, or a list of 1 to ${MOST_LENGTHS} of them`;
  const own = readList('blockFor', value, expected);
  if (own.length > MOST_LENGTHS) throw optionRangeError('blockFor', expected, value);
  return own.map((ms, i) => readInterval(`blockFor[${i}]`, ms));
}

module.exports = {
  LIMITER_NAMES,
  readBlock,
  readCallOptions,
  readLimiterOptions,
  rejectOptions,
  withLimits,
};
