// What an oracle remembers of one life of an id: all that was recorded and all that was taken back.
'use strict';

// A history is a list of { at, cost, attempt } and { takesBack: attempt, now }, as they came.

/** What was recorded and not taken back. */
function standing(history) {
  const gone = new Set(history.map(({ takesBack }) => takesBack));
  return history.filter(({ attempt }) => attempt !== undefined && !gone.has(attempt));
}

const sumOf = (records) => records.reduce((sum, { cost }) => sum + cost, 0);

const lastRecordAt = (history) => history.findLast(({ at }) => at !== undefined)?.at;

/** No count goes beyond; small limits have small counts. */
function largestCount(limits) {
  const isSmall = limits.every(({ maxInInterval }) => maxInInterval < 2 ** 24 - 1);
  return isSmall ? 2 ** 24 - 1 : 2 ** 53 - 1;
}

/** Whether a count of this history has ever stopped at the largest. */
function isCapped(history, { limits }) {
  const everything = history.reduce((sum, { cost = 0 }) => sum + cost, 0);
  return everything >= largestCount(limits);
}

module.exports = { isCapped, largestCount, lastRecordAt, standing, sumOf };
