// Loads the native addon; the only file that does.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const nodeGypBuild = require('node-gyp-build');
const { failure } = require('./errors');

const PACKAGE = path.join(__dirname, '..');

/**
 * The system's loader ends the process where a library is cut off. Linkers and strip put the table of
 * sections last, so an ELF file that has all of it is whole.
 */
function assertWhole(file) {
  const header = Buffer.alloc(64);
  const descriptor = fs.openSync(file);
  try {
    fs.readSync(descriptor, header);
    const { size } = fs.fstatSync(descriptor);
    const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2;
    const sections = header.readUInt16LE(0x3c) * header.readUInt16LE(0x3a);
    const expected = isElf64 ? Number(header.readBigUInt64LE(0x28)) + sections : 0;
    if (size < expected) throw new Error(`${file} is cut off: ${size} of ${expected} bytes`);
  } finally {
    fs.closeSync(descriptor);
  }
}

function load() {
  try {
    assertWhole(nodeGypBuild.path(PACKAGE));
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
