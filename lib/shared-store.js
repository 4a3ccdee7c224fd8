// The store in memory that threads and processes share.
'use strict';

const { optionRangeError, rangeError } = require('./errors');
const { createLocalStore } = require('./local-store');
const { loadAddon } = require('./native');
const { failSharedOf, refuseUnsupported } = require('./shared/failures');

const LOG = 'sliding-window-log';

/** As in shared/shared_store.h: what a log has room for in a region, also where its limit varies. */
const LONGEST_LOG = 2 ** 20 - 1;
const LONGEST_VARYING_LOG = 1000;

function assertLogsFit({ windows, algorithm }) {
  if (algorithm !== LOG) return;
  const i = windows.findIndex(({ maxInInterval }) => maxInInterval > LONGEST_LOG);
  if (i === -1) return;
  throw optionRangeError(
    windows.length === 1 ? 'maxInInterval' : `limits[${i}].maxInInterval`,
    `an integer from 1 to ${LONGEST_LOG}, the longest log in shared memory (the algorithms 'gcra', ` +
      "'sliding-window-counter' and 'fixed-window' have no such bound)",
    windows[i].maxInInterval,
  );
}

function assertLimitFits(max) {
  if (max <= LONGEST_VARYING_LOG) return;
  throw rangeError(
    'ERR_ROLLGATE_LIMIT',
    `limit: expected the function to give an integer from 0 to ${LONGEST_VARYING_LOG}, the most that a ` +
      "log in shared memory is kept for (the algorithms 'sliding-window-counter' and 'fixed-window' have " +
      `no such bound), got ${max}`,
  );
}

/** A synchronous store: see local-store.js. The first call attaches to the region. */
function createSharedStore(checked) {
  const { shared, algorithm, setsMax } = checked;
  const { name, directory, maxKeys } = shared;
  assertLogsFit(checked);
  const { createSharedLimiter } = loadAddon();
  if (createSharedLimiter === undefined) refuseUnsupported();
  const store = createLocalStore(checked, {
    create: createSharedLimiter,
    options: { name, directory, maxKeys },
    failed: failSharedOf(name),
    evictionText: `the shared limiter '${name}' is full (maxKeys) and drops`,
  });
  if (!setsMax || algorithm !== LOG) return store;
  return {
    ...store,
    decide(id, cost, records, read, max) {
      if (records) assertLimitFits(max);
      return store.decide(id, cost, records, read, max);
    },
  };
}

module.exports = { createSharedStore };
