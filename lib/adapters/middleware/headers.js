// The rate-limit headers: one writer for each draft, and the policy names that the later drafts send.
'use strict';

const { readString } = require('../../options/values');
const {
  partitionKey,
  rememberForLastNumber,
  rememberForNumbers,
  rememberForWindows,
} = require('./header-cache');
const { andThen } = require('./maybe-async');

/** Creates the writer of each draft; a new draft is a new line. */
const DRAFTS = {
  'draft-6': createDraft6Writer,
  'draft-7': createDraft7Writer,
  'draft-8': () => createListWriter({ space: ' ', partitionInState: false }),
  'draft-10': () => createListWriter({ space: '', partitionInState: true }),
};

/** The drafts that send policy names. */
const DRAFTS_WITH_NAMES = ['draft-8', 'draft-10'];

const HEADER_DRAFTS = Object.keys(DRAFTS);

/**
 * The functions (res, info, decision, nowMs, names) that write the headers of these settings; `names` come
 * from createPolicyNaming.
 */
function headerWriters({ legacyHeaders, standardHeaders }) {
  const writers = [];
  if (legacyHeaders) writers.push(createLegacyWriter());
  if (standardHeaders) writers.push(DRAFTS[standardHeaders]());
  return writers;
}

/** RFC 9651, section 3.3.1: an integer has at most 15 digits. */
const LARGEST_INTEGER = 999_999_999_999_999;

/** The nearest integer that headers allow. */
function toInteger(number) {
  return String(Math.min(number, LARGEST_INTEGER));
}

/** Rounded up, so that a client that waits so long is never too early. */
function toSeconds(ms) {
  return toInteger(Math.ceil(ms / 1000));
}

/** X-RateLimit-*: no standard, but what most clients read. The reset is a time of day. */
function createLegacyWriter() {
  const httpDate = rememberForLastNumber((second) => new Date(second * 1000).toUTCString());
  return (res, info, decision, nowMs) => {
    res.setHeader('X-RateLimit-Limit', String(info.limit));
    res.setHeader('X-RateLimit-Remaining', String(info.remaining));
    // The time that the reset refers to, for clients whose clock is off.
    res.setHeader('Date', httpDate(Math.floor(nowMs / 1000)));
    res.setHeader('X-RateLimit-Reset', toInteger(Math.ceil((nowMs + decision.resetIn) / 1000)));
  };
}

/** draft-ietf-httpapi-ratelimit-headers-06: the reset is a number of seconds. */
function createDraft6Writer() {
  const policiesOf = rememberForWindows(unnamedPolicies);
  return (res, info, decision) => {
    res.setHeader('RateLimit-Policy', policiesOf(decision.limits));
    res.setHeader('RateLimit-Limit', toInteger(info.limit));
    res.setHeader('RateLimit-Remaining', toInteger(info.remaining));
    res.setHeader('RateLimit-Reset', toSeconds(decision.resetIn));
  };
}

/** draft-ietf-httpapi-ratelimit-headers-07: the state of the tightest window in one header. */
function createDraft7Writer() {
  const policiesOf = rememberForWindows(unnamedPolicies);
  const stateOf = rememberForNumbers(
    (limit, remaining, reset) =>
      `limit=${toInteger(limit)}, remaining=${toInteger(remaining)}, reset=${toInteger(reset)}`,
  );
  return (res, info, decision) => {
    res.setHeader('RateLimit-Policy', policiesOf(decision.limits));
    const resetSeconds = Math.ceil(decision.resetIn / 1000);
    res.setHeader('RateLimit', stateOf(info.limit, info.remaining, resetSeconds));
  };
}

/** RateLimit-Policy of drafts 6 and 7: '10;w=1, 500;w=3600'. */
function unnamedPolicies(windows) {
  return windows
    .map((window) => toInteger(window.maxInInterval) + lengthOf(window, ';'))
    .join(', ');
}

/** The parameter w. A calendar window has no constant length. */
function lengthOf({ interval }, separator) {
  return interval === undefined ? '' : `${separator}w=${toSeconds(interval)}`;
}

/**
 * draft-ietf-httpapi-ratelimit-headers-08, spaced as express-rate-limit does, and -10 as RFC 9651 serializes
 * lists. Both send the state of every window; draft 10 has the partition key there as well.
 */
function createListWriter({ space, partitionInState }) {
  const separator = `;${space}`;
  const partsOf = rememberForWindows((windows, names) => constantParts(windows, names, separator));
  return (res, info, decision, _nowMs, names) => {
    const partition = `${separator}pk=:${partitionKey(info.key)}:`;
    const parts = partsOf(decision.limits, names);
    const statePartition = partitionInState ? partition : '';
    let states = '';
    let policies = '';
    for (let i = 0; i < parts.length; i++) {
      const window = decision.limits[i];
      const ms = windowResetMs(window, decision);
      const reset = ms === undefined ? '' : `${separator}t=${toSeconds(ms)}`;
      states += `${parts[i].state}${toInteger(window.remaining)}${reset}${statePartition}`;
      policies += `${parts[i].policy}${partition}`;
    }
    appendHeader(res, 'RateLimit', states);
    appendHeader(res, 'RateLimit-Policy', policies);
  };
}

/** For each window, what precedes the values that change. */
function constantParts(windows, names, separator) {
  return windows.map((window, i) => {
    const name = i === 0 ? quoted(names[i]) : `, ${quoted(names[i])}`;
    const quota = toInteger(window.maxInInterval);
    return {
      state: `${name}${separator}r=`,
      policy: `${name}${separator}q=${quota}${lengthOf(window, separator)}`,
    };
  });
}

/**
 * The time until the quota of a window grows. A single window has the reset of the decision, which
 * includes minDifference. Of several, each has its own. Retry-After must not be earlier than a reset in the
 * same response; a window with room left may reset later than that, and its reset is not sent (undefined). A limit
 * of 0 refuses for the time left.
 */
function windowResetMs(window, { allowed, timeLeft, resetIn, limits }) {
  if (limits.length === 1) return resetIn;
  if (window.maxInInterval === 0 && timeLeft !== Number.POSITIVE_INFINITY) return timeLeft;
  return !allowed && window.resetIn > timeLeft ? undefined : window.resetIn;
}

/** RFC 9110, section 10.2.3. No time is right for a cost that can never pass. */
function setRetryAfter(res, { timeLeft }) {
  if (timeLeft === Number.POSITIVE_INFINITY) return;
  res.setHeader('Retry-After', toSeconds(timeLeft));
}

/** Several limiters of one response all appear in a list header. Node 18.0 has no res.appendHeader. */
function appendHeader(res, name, value) {
  const earlier = res.getHeader(name);
  res.setHeader(name, earlier === undefined ? value : [].concat(earlier, value));
}

/**
 * A function (req, res, decision) that returns the policy names, one for each window, or a promise of them if
 * `identifier` returns one; undefined where a request needs none.
 */
function createPolicyNaming({ identifier, standardHeaders, problemDetails }) {
  const areInHeaders = DRAFTS_WITH_NAMES.includes(standardHeaders);
  if (!areInHeaders && !problemDetails) return () => undefined;
  const nameOf = createNameOf(identifier);
  if (areInHeaders) return nameOf;
  return (req, res, decision) => (decision.allowed ? undefined : nameOf(req, res, decision));
}

function createNameOf(identifier) {
  if (typeof identifier !== 'function') {
    const namesOf = rememberForWindows((windows) => policyNames(windows, identifier));
    return (_req, _res, { limits }) => namesOf(limits);
  }
  return (req, res, { limits }) =>
    andThen(identifier(req, res), (given) => policyNames(limits, readIdentifier(given)));
}

/** Names must differ, so with several windows each contains its window. */
function policyNames(windows, identifier) {
  if (identifier === undefined) return windows.map(nameOfWindow);
  if (windows.length === 1) return [identifier];
  return windows.map((window) => `${identifier}-${nameOfWindow(window)}`);
}

/** The name of the limit; without one '100-in-15min', as in express-rate-limit, or '1000-per-month'. */
function nameOfWindow({ name, interval, calendar, maxInInterval }) {
  if (name !== undefined) return toAscii(name);
  return `${maxInInterval}-${calendar === undefined ? `in-${duration(interval)}` : `per-${calendar}`}`;
}

/** Headers allow only ASCII. Percent signs are escaped as well, so that names stay different. */
function toAscii(name) {
  return name.replace(/[^\x20-\x7e]|%/gu, encodeURIComponent);
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

function duration(ms) {
  if (ms < MINUTE_MS) return `${ms / SECOND_MS}sec`;
  if (ms < HOUR_MS) return `${ms / MINUTE_MS}min`;
  if (ms < DAY_MS) return withPlural(ms / HOUR_MS, 'hr');
  return withPlural(ms / DAY_MS, 'day');
}

function withPlural(count, unit) {
  return `${count}${unit}${count > 1 ? 's' : ''}`;
}

const PRINTABLE = /^[\x20-\x7e]+$/;

/** What RFC 9651, section 3.3.3, allows as a string. */
function readIdentifier(value) {
  const expected = 'a non-empty string of printable ASCII characters';
  return readString('identifier', value, expected, (string) => PRINTABLE.test(string));
}

/** What separates the parameters of a policy; undefined for what is no draft with names. */
function separatorOf(draft) {
  if (!DRAFTS_WITH_NAMES.includes(draft)) return undefined;
  return draft === 'draft-8' ? '; ' : ';';
}

/** A name as the header has it. */
function quoted(name) {
  return `"${name.replace(/["\\]/g, '\\$&')}"`;
}

module.exports = {
  HEADER_DRAFTS,
  appendHeader,
  createPolicyNaming,
  headerWriters,
  quoted,
  readIdentifier,
  separatorOf,
  setRetryAfter,
};
