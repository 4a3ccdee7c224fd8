// Moments of real time in whole us, so that sums of them are exact.
'use strict';

const now = () => Math.round(performance.now() * 1000);

const fromNow = (ms) => now() + Math.round(ms * 1000);

/** Whole ms, rounded up, at least 1. */
const msUntil = (moment) => Math.max(1, Math.ceil((moment - now()) / 1000));

module.exports = { fromNow, msUntil, now };
