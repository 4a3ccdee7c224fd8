// Which of the two decides in this process, the native addon or the WebAssembly module, and what needs the addon.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { loadBinding } = require('../../lib/binding');

const WASM_FILE = path.join(__dirname, '../../lib/wasm/rollgate.wasm');

const hasAddon = loadBinding().isWasm !== true;

/** Whether this process has the native Redis client. */
const hasNativeRedis = loadBinding().createRedisClient !== undefined;

/** For tests of what only the addon has. */
const whereAddon = {
  get test() {
    return hasAddon ? test : test.skip;
  },
  get describe() {
    return hasAddon ? describe : describe.skip;
  },
};

/** The functions of the module in an instance of its own, whatever decides in this process. */
function newWasmBinding() {
  const { compile, createBinding } = require('../../lib/wasm');
  return createBinding(compile(fs.readFileSync(WASM_FILE), WASM_FILE));
}

module.exports = { WASM_FILE, hasAddon, hasNativeRedis, newWasmBinding, whereAddon };
