// Loads the native addon; the only file that does.
'use strict';

const path = require('node:path');
const nodeGypBuild = require('node-gyp-build');
const { failure } = require('./errors');

const PACKAGE = path.join(__dirname, '..');

function load() {
  try {
    return nodeGypBuild(PACKAGE);
  } catch (cause) {
    const script = path.join(PACKAGE, 'scripts/install.mjs');
    const message =
      `rollgate's native addon does not load here (${process.platform}-${process.arch}): run ` +
      `'node ${script}', which builds it or says what that takes. The cause: ${cause.message.trim()}`;
    throw failure('ERR_ROLLGATE_ADDON', message, cause);
  }
}

/**
 * @type {{ createMemoryLimiter: Function, createPortableLimiter: Function, createRedisClient?: Function,
 *   createSharedLimiter?: Function, unlinkShared?: Function, liveLimiters: () => number }}
 */
module.exports = load();
