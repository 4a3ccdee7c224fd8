// The clocks of this process, and how much has passed by them: for what the server keeps only for a time.
'use strict';

const { performance } = require('node:perf_hooks');
const platform = require('#platform');
const { bootClock } = require('../../native');

/**
 * In ms: `boot` counts while the host sleeps, `steady` is that of ages, because the others may jump.
 *
 * @typedef {{ boot: number, steady: number, wall: number }} Times
 */

const clocks = {
  boot() {
    // When first needed, because loading the addon takes time.
    clocks.boot = bootClock() ?? (() => platform.monotonicMs());
    return clocks.boot();
  },
  steady: () => performance.now(),
  wall: () => Date.now(),
};

/** @returns {Times} */
const readClocks = () => ({ boot: clocks.boot(), steady: clocks.steady(), wall: clocks.wall() });

/** The longest of the times that have passed by these clocks: some of them may have stood still. */
function elapsedMs(from, now = readClocks()) {
  return Math.max(now.boot - from.boot, now.steady - from.steady, now.wall - from.wall);
}

module.exports = { clocks, elapsedMs, readClocks };
