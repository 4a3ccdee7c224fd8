// Reads the command line of a comparison with another revision.
'use strict';

const DEFAULT_LIMIT = 1.05;

/**
 * `words` are names of cells, or their beginnings up to a hyphen. Without words, all cells are wanted but those that
 * run by name only. Throws for a name that no cell has, and for a limit that is no ratio.
 *
 * @returns {{ cells: object[], limit: number }}
 */
function readComparison(cells, { limit, words }) {
  const ratio = limit === undefined ? DEFAULT_LIMIT : Number(limit);
  if (!(ratio > 0 && ratio < 100)) {
    throw new Error(`--limit takes a ratio, such as ${DEFAULT_LIMIT}, not '${limit}'.`);
  }
  const isNamed = (word) => (cell) => cell.name === word || cell.name.startsWith(`${word}-`);
  const unknown = words.find((word) => !cells.some(isNamed(word)));
  if (unknown !== undefined) {
    const names = cells.map((cell) => cell.name).join(', ');
    throw new Error(`There is no cell '${unknown}'. There are: ${names}.`);
  }
  const wanted = cells.filter((cell) =>
    words.length === 0 ? !cell.isByNameOnly : words.some((word) => isNamed(word)(cell)),
  );
  return { cells: wanted, limit: ratio };
}

module.exports = { DEFAULT_LIMIT, readComparison };
