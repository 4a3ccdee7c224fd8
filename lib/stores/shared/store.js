// The store in memory that threads and processes share.
'use strict';

const { optionRangeError, failure } = require('../../base/errors');
const { LocalStore } = require('../local');
const { loadBinding } = require('../../native');

const LOG = 'sliding-window-log';

/** As in shared/shared_store.h: the most actions of a log in a region. */
const LONGEST_LOG = 2 ** 20 - 1;

function assertLogsFit({ windows }) {
  const i = windows.findIndex(({ maxInInterval }) => maxInInterval > LONGEST_LOG);
  if (i === -1) return;
  throw optionRangeError(
    windows.length === 1 ? 'maxInInterval' : `limits[${i}].maxInInterval`,
    `an integer from 1 to ${LONGEST_LOG}, the longest log in shared memory (the algorithms 'gcra', ` +
      "'sliding-window-counter' and 'fixed-window' have no such bound)",
    windows[i].maxInInterval,
  );
}

/** Room for these is reserved at once; with common limits they fit into the 64 MB of a container. */
const DEFAULT_MAX_KEYS = 50_000;
/** The same where each id has room for 1,024 entries with a cost for each limit. */
const DEFAULT_WEIGHTED_KEYS = 1000;

/** Its first call attaches to the region. */
class SharedStore extends LocalStore {
  #hasLogs;

  constructor(checked) {
    const { shared, algorithm, isWeighted } = checked;
    const hasEntries = isWeighted && algorithm === LOG;
    const byDefault = hasEntries ? DEFAULT_WEIGHTED_KEYS : DEFAULT_MAX_KEYS;
    const { name, directory, maxKeys = byDefault, room = 0 } = shared;
    const hasLogs = algorithm === LOG && !isWeighted;
    if (hasLogs) assertLogsFit(checked);
    const { createSharedLimiter } = loadBinding();
    if (createSharedLimiter === undefined) throwUnsupported();
    super(checked, {
      create: createSharedLimiter,
      options: { name, directory, maxKeys, room },
      failed: throwSharedErrorOf(name),
      evictionWarning: `the shared limiter '${name}' is full (maxKeys) and drops`,
    });
    this.#hasLogs = hasLogs;
  }

  setLimits(changed) {
    if (this.#hasLogs) assertLogsFit(changed);
    super.setLimits(changed);
  }
}

/** In the order of SharedError::Kind: shared/shared_error.h. */
const CODES = [
  'ERR_ROLLGATE_SHARED_MISMATCH',
  'ERR_ROLLGATE_SHARED_FILE',
  'ERR_ROLLGATE_SHARED_SYSTEM',
  'ERR_ROLLGATE_SHARED_FULL',
  'ERR_ROLLGATE_SHARED_CORRUPT',
];

/** Errors in which the native side does not name the limiter. */
const NAMELESS = ['ERR_ROLLGATE_SHARED_FULL', 'ERR_ROLLGATE_SHARED_CORRUPT'];

/** The native side calls this to throw. */
function throwSharedError(kind, message) {
  throw failure(CODES[kind], message);
}

/** The same for the limiter of one region. */
function throwSharedErrorOf(name) {
  return (kind, message) =>
    throwSharedError(
      kind,
      NAMELESS.includes(CODES[kind]) ? `the shared limiter '${name}': ${message}` : message,
    );
}

function throwUnsupported() {
  const why = loadBinding().isWasm
    ? "needs the native addon, and rollgate runs as WebAssembly here; take 'kv', or 'redis' with a client of ioredis or node-redis"
    : 'needs Linux, and this build of the addon is without it';
  throw failure('ERR_ROLLGATE_UNSUPPORTED', `option 'shared': memory shared by processes ${why}`);
}

module.exports = {
  LONGEST_LOG,
  SharedStore,
  throwSharedError,
  throwSharedErrorOf,
  throwUnsupported,
};
