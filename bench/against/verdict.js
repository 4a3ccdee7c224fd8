// What the runs of two revisions say: the least times, their ratios, and which cells are too slow.
//
// Noise only adds to a time, so the least of many runs is the figure, and a ratio above the limit is believed only
// when more rounds do not lower it.
'use strict';

const ROUNDS = 9;
const MOST_ROUNDS = 27;

/**
 * Runs every cell `ROUNDS` times on both sides in turn, the sides swapped each round, then those above the limit
 * again, until none is or `MOST_ROUNDS` is reached. A side that does not have the cell is not run again.
 *
 * @param {object[]} cells
 * @param {(side: 'old' | 'new', cell: object) => Promise<{ times: Record<string, number> } | { absent: string }>} run
 * @returns {Promise<object[]>} the rows, as `rowsOf` gives them
 */
async function compare(cells, run, { limit, onRound = () => {} }) {
  const results = cells.map((cell) => ({ cell, old: [], new: [], absent: {} }));
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const due = results.filter((result) => round < ROUNDS || isAbove(result, limit));
    if (due.length === 0) break;
    onRound(
      round,
      due.map(({ cell }) => cell),
    );
    const sides = round % 2 === 0 ? ['old', 'new'] : ['new', 'old'];
    for (const result of due) {
      for (const side of sides) {
        if (result.absent[side]) continue;
        const { times, absent } = await run(side, result.cell);
        if (times) result[side].push(times);
        else result.absent[side] = absent;
      }
    }
  }
  return results.flatMap(rowsOf);
}

const isAbove = (result, limit) => rowsOf(result).some(({ ratio }) => ratio > limit);

/** A row for each time that the cell measures; one without a ratio if a side does not have the cell. */
function rowsOf({ cell, old, new: now, absent }) {
  const names = Object.keys(now[0] ?? old[0] ?? { [cell.name]: 0 });
  return names.map((name) => {
    const [before, after] = [old, now].map((runs) => summary(runs.map((times) => times[name])));
    const ratio = absent.old || absent.new ? undefined : after.least / before.least;
    return { name, title: cell.title, old: before, new: after, ratio, rounds: now.length, absent };
  });
}

/** `spread` is how far the median is above the least, as a part of it. */
function summary(times) {
  if (times.length === 0) return undefined;
  const sorted = [...times].sort((a, b) => a - b);
  const [least] = sorted;
  return { least, spread: sorted[sorted.length >> 1] / least - 1 };
}

/** Why the comparison fails, one line for each cell: it became slower, or only the new revision does not have it. */
function failuresOf(rows, limit) {
  return rows.flatMap(({ name, ratio, absent }) => {
    if (ratio > limit) return [`${name} takes ${ratio.toFixed(2)} times as long, above ${limit}.`];
    return absent.new && !absent.old ? [`${name} does not run: ${absent.new}`] : [];
  });
}

module.exports = { MOST_ROUNDS, ROUNDS, compare, failuresOf };
