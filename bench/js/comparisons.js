// What a benchmark's results say in words: where rollgate is behind, by how much, and in how many comparisons it is ahead.
//
// A comparison is { what, to, ours, theirs, isMoreBetter }: two numbers, each { figure, min, max } or
// undefined. Its ratio is above 1 where rollgate is ahead.
'use strict';

const { medianOf } = require('./figures');
const { times } = require('./report');

const isKnown = ({ ours, theirs }) =>
  [ours?.figure, theirs?.figure].every((value) => Number.isFinite(value) && value > 0);

function ratioOf({ ours, theirs, isMoreBetter }) {
  return isMoreBetter ? ours.figure / theirs.figure : theirs.figure / ours.figure;
}

/** Whether every round of the one may have been one of the other. */
const doesOverlap = ({ ours, theirs }) => ours.min <= theirs.max && theirs.min <= ours.max;

function byWhat(comparisons) {
  const groups = new Map();
  for (const one of comparisons) groups.set(one.what, [...(groups.get(one.what) ?? []), one]);
  return groups;
}

/** Counts of comparisons: all, ahead, ahead by less than the spread, behind. `unknown` could not be compared. `losses` are grouped by what was compared, greatest first. */
function outcome(comparisons) {
  const known = comparisons.filter(isKnown).map((one) => ({ ...one, ratio: ratioOf(one) }));
  const behind = known.filter(({ ratio }) => ratio < 1).sort((a, b) => a.ratio - b.ratio);
  const ahead = known.filter(({ ratio }) => ratio > 1);
  return {
    compared: known.length,
    unknown: comparisons.filter(({ ours, theirs }) => theirs && !isKnown({ ours, theirs })),
    ahead: ahead.length,
    close: ahead.filter(doesOverlap).length,
    behind: behind.length,
    worst: behind[0],
    median: medianOf(known.map(({ ratio }) => ratio)),
    losses: byWhat(behind),
  };
}

const HOW_TO_READ =
  'A ratio above 1 means that rollgate is better. 0.50 x means that rollgate does half as much, or needs twice as much. * means that rounds of both overlap.';

const lossWords = (one) => `${one.to} ${times(one.ratio)}${doesOverlap(one) ? ' *' : ''}`;

/** By what was compared. Peers that failed are told below the tables. */
function missingMarkdown(unknown) {
  if (unknown.length === 0) return [];
  const each = [...byWhat(unknown)].map(
    ([what, all]) => `${what}: ${all.map(({ to }) => to).join(', ')}`,
  );
  return [
    `**Could not be compared**, because rollgate failed or a figure is 0: ${each.join('; ')}.`,
    '',
  ];
}

/** Markdown: the losses of one benchmark, none left out. */
function lossesMarkdown(comparisons) {
  const { compared, unknown, ahead, close, behind, losses } = outcome(comparisons);
  const missing = missingMarkdown(unknown);
  if (compared === 0) return missing;
  const where = `**Where rollgate loses:** behind in ${behind} of ${compared} comparisons, ahead in ${ahead} (${close} of these by less than the spread).`;
  if (behind === 0) return [where, '', ...missing];
  return [
    `${where} ${HOW_TO_READ}`,
    '',
    ...[...losses].map(([what, all]) => `- ${what}: ${all.map(lossWords).join('; ')}`),
    '',
    ...missing,
  ];
}

/** The cells of one benchmark's row in the summary of all. */
function summaryCells(comparisons) {
  const { compared, unknown, ahead, close, behind, worst, median } = outcome(comparisons);
  const words = worst ? `${worst.what}: ${lossWords(worst)}` : '–';
  const missing = unknown.length === 0 ? '' : `, and ${unknown.length} that could not be`;
  return [
    `${compared}${missing}`,
    ...[ahead, close, behind].map(String),
    words,
    Number.isFinite(median) ? times(median) : '–',
  ];
}

module.exports = { HOW_TO_READ, lossesMarkdown, outcome, summaryCells };
