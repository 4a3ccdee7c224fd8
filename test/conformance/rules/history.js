// What happened to one id, as the rules of the oracle read it.
'use strict';

const { max } = Math;

// A history is an array of { at, costs, attempt, limits, own, largestOwn, isRecord } and { settles: attempt, actual,
// now }, in the order of the calls. `costs` and `actual` have a number for each window; `limits` are those of the call,
// with its calendars; `own` is the largest maximum of the limiter itself, `largestOwn` the largest that it ever had.

const isAny = (costs) => costs.some((cost) => cost > 0);

/** What was recorded, at the costs that it came to, if any. */
function standing(history) {
  const actual = new Map(history.map((entry) => [entry.settles, entry.actual]));
  return history
    .filter(({ attempt }) => attempt !== undefined)
    .map((record) => ({ ...record, costs: actual.get(record.attempt) ?? record.costs }))
    .filter(({ costs }) => isAny(costs));
}

/** In one window, given by its index. */
const sumOf = (records, i) => records.reduce((sum, { costs }) => sum + (costs?.[i] ?? 0), 0);
const largestSum = (history, { limits }) => max(...limits.map((_, i) => sumOf(history, i)));
const lastRecordAt = (history) => history.findLast(({ at }) => at !== undefined)?.at;

const HOUR = 3_600_000_000;
/** The longest time in which a window of a calendar can be of interest. */
const LONGEST = {
  hour: 3 * HOUR,
  day: 50 * HOUR,
  week: (7 * 24 + 26) * HOUR,
  month: (31 * 24 + 26) * HOUR,
  year: (366 * 24 + 26) * HOUR,
};
const lengthOf = ({ interval, calendar }) => interval ?? LONGEST[calendar.unit];
const longestOf = ({ limits }) => max(...limits.map(lengthOf));
const hasNames = ({ limits }) => limits.some(({ name }) => name !== undefined);

module.exports = {
  hasNames,
  isAny,
  largestSum,
  lastRecordAt,
  longestOf,
  standing,
  sumOf,
};
