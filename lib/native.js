// Loads the native addon; the only file that does.
'use strict';

const path = require('node:path');
const nodeGypBuild = require('node-gyp-build');

const PACKAGE = path.join(__dirname, '..');

function load() {
  try {
    return nodeGypBuild(PACKAGE);
  } catch (cause) {
    const message = `rollgate's native addon is not built: run 'npm run build' in ${PACKAGE}`;
    throw Object.assign(new Error(message, { cause }), { code: cause.code });
  }
}

/**
 * @type {{ createMemoryLimiter: Function, createPortableLimiter: Function, createRedisClient?: Function,
 *   createSharedLimiter?: Function, unlinkShared?: Function, liveLimiters: () => number }}
 */
module.exports = load();
