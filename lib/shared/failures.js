// Why a limiter in shared memory could not decide.
'use strict';

const { failure } = require('../errors');

/** In the order of SharedError::Kind: shared/shared_error.h. */
const CODES = [
  'ERR_ROLLGATE_SHARED_MISMATCH',
  'ERR_ROLLGATE_SHARED_FILE',
  'ERR_ROLLGATE_SHARED_SYSTEM',
  'ERR_ROLLGATE_SHARED_FULL',
  'ERR_ROLLGATE_SHARED_CORRUPT',
];

/** Of these the native side does not say which limiter it is. */
const NAMELESS = ['ERR_ROLLGATE_SHARED_FULL', 'ERR_ROLLGATE_SHARED_CORRUPT'];

/** What the native side calls to throw. */
function failShared(kind, message) {
  throw failure(CODES[kind], message);
}

/** The same for the limiter of one region. */
function failSharedOf(name) {
  return (kind, message) =>
    failShared(
      kind,
      NAMELESS.includes(CODES[kind]) ? `the shared limiter '${name}': ${message}` : message,
    );
}

function refuseUnsupported() {
  throw failure(
    'ERR_ROLLGATE_UNSUPPORTED',
    "option 'shared': memory shared by processes needs Linux, and this build of the addon is without it",
  );
}

module.exports = { failShared, failSharedOf, refuseUnsupported };
