// Finds the name that a mistyped one was probably meant to be.
'use strict';

/** Levenshtein distance. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, replaced));
    }
    row = next;
  }
  return row[b.length];
}

const LONGEST_COMPARED = 50;

/** What others call the same. */
const SYNONYMS = {
  windowms: 'interval',
  window: 'interval',
  duration: 'interval',
  points: 'maxInInterval',
};

/** The known name nearest to `name`, upper and lower case alike: one that begins with it before others. */
function nearestName(name, knownNames) {
  const wanted = name.slice(0, LONGEST_COMPARED).toLowerCase();
  if (knownNames.includes(SYNONYMS[wanted])) return SYNONYMS[wanted];
  const begun = knownNames.find((known) => known.toLowerCase().startsWith(wanted));
  if (begun !== undefined) return begun;
  let nearest;
  let least = Number.POSITIVE_INFINITY;
  for (const known of knownNames) {
    const steps = distance(wanted, known.toLowerCase());
    if (steps < least) {
      least = steps;
      nearest = known;
    }
  }
  return nearest;
}

module.exports = { nearestName };
