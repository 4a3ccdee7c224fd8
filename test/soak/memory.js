// The soak test in memory: all that a process can do to limiters, at once, for as long as it is told.
'use strict';

const { flood } = require('./floods');
const { hammer } = require('./real-time');
const { main } = require('./soak');
const { followTraces } = require('./traces');
const { keepWaiting } = require('./waits');
const { startAndTerminate } = require('./workers');

main('memory', (soak) =>
  Promise.all([
    followTraces(soak),
    flood(soak),
    hammer(soak),
    startAndTerminate(soak),
    keepWaiting(soak),
  ]),
);
