// Finds the name that a mistyped one was probably meant to be.
'use strict';

/** How many characters to add, drop, replace or, side by side, swap. */
function distance(a, b) {
  let beforeLast;
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(last[j] + 1, row[j - 1] + 1, replaced));
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}

const LONGEST_COMPARED = 50;
const SHORTEST_BEGINNING = 3;

/** What others call the same. */
const SYNONYMS = {
  windowms: 'interval',
  window: 'interval',
  duration: 'interval',
  points: 'maxInInterval',
  headers: 'legacyHeaders',
};

/** Of a name, how much may be wrong: a third, or one character. */
function mostWrong(a, b) {
  return Math.max(1, Math.floor(Math.max(a.length, b.length) / 3));
}

/**
 * The known name nearest to `name`, upper and lower case alike, and whether it was probably meant: the same
 * one, then one that begins with it, before others.
 */
function nearestName(name, knownNames) {
  const wanted = name.slice(0, LONGEST_COMPARED).toLowerCase();
  const same = knownNames.find((known) => known.toLowerCase() === wanted);
  if (same !== undefined) return { nearest: same, isLikely: true };
  const synonym = SYNONYMS[wanted];
  if (knownNames.includes(synonym)) return { nearest: synonym, isLikely: true };
  const begun = knownNames.find((known) => known.toLowerCase().startsWith(wanted));
  if (begun !== undefined && wanted.length >= SHORTEST_BEGINNING) {
    return { nearest: begun, isLikely: true };
  }
  const steps = knownNames.map((known) => distance(wanted, known.toLowerCase()));
  const least = Math.min(...steps);
  const nearest = knownNames[steps.indexOf(least)];
  return { nearest, isLikely: least <= mostWrong(wanted, nearest) };
}

/** The end of a message about an unknown name: the nearest of those known, of which there are some. */
function hintAt(name, knownNames) {
  const { nearest, isLikely } = nearestName(name, knownNames);
  return isLikely ? `; did you mean '${nearest}'?` : ` (the nearest is '${nearest}')`;
}

module.exports = { hintAt };
