// Scales of plots: from values to pixels, linear from zero or by powers of ten, with the values worth a tick.
'use strict';

const MOST_TICKS = 4;
const STEPS = [1, 2, 2.5, 5, 10];

/** From zero to the largest of the values, in round steps. */
function linearScale(values, [from, to], { ticks: most = MOST_TICKS } = {}) {
  const largest = Math.max(0, ...values.filter(Number.isFinite));
  const end = largest > 0 ? largest : 1;
  const power = 10 ** Math.floor(Math.log10(end / most));
  const step = STEPS.map((factor) => factor * power).find((size) => size * most >= end);
  const ticks = Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
  const pixel = (value) => from + ((to - from) * Math.min(Math.max(value, 0), end)) / end;
  return { pixel, ticks, holds: Number.isFinite };
}

/** Whole powers of ten around the values. What is not above zero has no place on it. */
function logScale(values, [from, to]) {
  const holds = (value) => Number.isFinite(value) && value > 0;
  const logs = values.filter(holds).map(Math.log10);
  const low = logs.length > 0 ? Math.floor(Math.min(...logs)) : 0;
  const high = Math.max(low + 1, logs.length > 0 ? Math.ceil(Math.max(...logs)) : 1);
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const pixel = (value) => {
    const log = holds(value) ? Math.min(Math.max(Math.log10(value), low), high) : low;
    return from + ((to - from) * (log - low)) / (high - low);
  };
  return { pixel, ticks, holds };
}

module.exports = { linearScale, logScale };
