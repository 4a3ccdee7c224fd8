// The stores of this package as subjects of the corpus; see promises.js for what a subject has.
'use strict';

const { EACH_STORE } = require('../conformance/stores');
const { firstDifference } = require('../conformance/replay');
const { traceOf, withoutSteps } = require('../conformance/corpus');
const { ALGORITHM_NAMES } = require('../conformance/oracle');
const { handTime, stubbedTime } = require('./time');

/** The most in any interval, as docs/algorithms.md says. */
const MOST = {
  'sliding-window-log': (max) => max,
  'sliding-window-counter': (max) => 2 * max,
  'fixed-window': (max) => 2 * max,
  gcra: (max) => 2 * max - 1,
};
const BOUNDS = {
  'sliding-window-log': 'log',
  'sliding-window-counter': 'two weighted windows; at most twice the limit in any interval',
  'fixed-window': 'fixed window; at most twice the limit in any interval',
  gcra: 'bucket; at most twice the limit less 1 in any interval',
};
const HAS_WINDOWS = ['sliding-window-counter', 'fixed-window'];
const MODULE = 'memory, WebAssembly';

const isLocal = ({ isSync }) => isSync;

/** Which effects of a step its pages exclude. */
function promisedSteps(store, algorithm) {
  if (!isLocal(store)) return ['more after a step back'];
  if (HAS_WINDOWS.includes(algorithm)) return ['more after a step back', 'locked out'];
  return ['more after a step back', 'more after a step forward', 'locked out'];
}

function readsHere(algorithm) {
  return HAS_WINDOWS.includes(algorithm) ? 'monotonic, follows the time of day' : 'monotonic';
}

function limitsOf({ interval, max }) {
  return [{ interval, maxInInterval: max }];
}

/** `clockOf(time)` is the option `clock`; undefined for the built-in one. */
function subjectOn(store, place, algorithm, clockOf) {
  return {
    name: store.name,
    algorithm,
    most: MOST[algorithm],
    takesCosts: true,
    time: clockOf === undefined ? stubbedTime : handTime,
    open(policy, time) {
      const limiter = place.open({
        ...{ algorithm, limits: limitsOf(policy), countBlocked: false },
        ...(clockOf !== undefined && { clock: clockOf(time) }),
      });
      return {
        async attempt(id, cost) {
          const { allowed, timeLeft } = await limiter.attempt(id, { cost });
          return { allowed, wait: timeLeft };
        },
        setMax: (max) => limiter.setLimits(limitsOf({ ...policy, max })),
        close: () => limiter.close(),
      };
    },
  };
}

/** It takes every n-th trace. A region is created for each replay. */
function shareOf({ name, pace, isSync }) {
  if (name === 'shared memory') return 3;
  return pace < 1000 ? 37 : isSync ? 1 : 5;
}

/** The subject of a store and an algorithm; where its clock cannot be moved, its time does not step. */
function rollgateSubject(store, place, algorithm) {
  const clockOf = isLocal(store) ? (time) => time.monotonic : (time) => time.wall;
  const hasOwnWindows = store.name !== MODULE && isLocal(store) && HAS_WINDOWS.includes(algorithm);
  return {
    ...subjectOn(store, place, algorithm, clockOf),
    onSteps: store.name === MODULE ? subjectOn(store, place, algorithm) : undefined,
    group: `rollgate, \`${algorithm}\``,
    algorithm: BOUNDS[algorithm],
    reads: isLocal(store) ? readsHere(algorithm) : 'time of day of the host or server',
    oneOf: shareOf(store),
    promised: ['interval', 'wait', 'refusals', 'limits'],
    promisedSteps: promisedSteps(store, algorithm),
    cannot: hasOwnWindows ? { clock: 'not measured' } : {},
  };
}

/** How many traces a store answers otherwise than their lines, of how many. */
async function differences(store, place, lines) {
  const some = store.pace < 1000 ? lines.filter((_, i) => i % 37 === 0) : lines;
  const found = [];
  for (const line of some) {
    const difference = await firstDifference(withoutSteps(traceOf(line)), place.open);
    if (difference !== null) found.push({ trace: JSON.parse(line).trace, ...difference });
  }
  return { tried: some.length, found };
}

module.exports = { ALGORITHM_NAMES, EACH_STORE, differences, rollgateSubject };
