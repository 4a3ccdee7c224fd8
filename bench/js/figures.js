// What a number of several runs comes to. Noise only adds to a time and only lowers a rate, so the least time and
// the highest rate are the figures. What is neither, such as a size, has its median.
'use strict';

/** By the names that benchmarks give to their numbers. */
const RATE = /^perSecond|^attempts$/;
const NEITHER = /bytes|KiB|MiB|Percent|commands|files|iterations|lastToFirst|refusals|switches/i;

const ascending = (a, b) => a - b;

/** The figure of a number with this name, and its spread. */
function statOf(name, values) {
  const sorted = [...values].sort(ascending);
  const [min, max] = [sorted[0], sorted.at(-1)];
  if (RATE.test(name)) return { figure: max, min, max };
  return { figure: NEITHER.test(name) ? medianOf(sorted) : min, min, max };
}

function medianOf(values) {
  const sorted = [...values].sort(ascending);
  const middle = (sorted.length - 1) / 2;
  return (sorted[Math.floor(middle)] + sorted[Math.ceil(middle)]) / 2;
}

module.exports = { medianOf, statOf };
