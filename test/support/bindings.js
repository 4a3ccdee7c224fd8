// Which of the two decides in this process, the native addon or the WebAssembly module, and what needs the addon.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { loadBinding } = require('../../lib/native');
const { where } = require('./tiers');

const WASM_FILE = path.join(__dirname, '../../lib/native/wasm/rollgate.wasm');

const hasAddon = loadBinding().isWasm !== true;

/** Whether this process has the native Redis client. */
const hasNativeRedis = loadBinding().createRedisClient !== undefined;

/** For tests of what only the addon has. */
const whereAddon = where(hasAddon);

/** The functions of the module in an instance of its own, whatever decides in this process. */
function newWasmBinding() {
  const { compile, createBinding } = require('../../lib/native/wasm');
  return createBinding(compile(fs.readFileSync(WASM_FILE), WASM_FILE));
}

/** The addon's functions, whatever decides in this process; undefined where there is no addon. */
function addonBinding() {
  try {
    return require('../../lib/native/addon').loadAddon();
  } catch {
    return undefined;
  }
}

const LIB = path.join(__dirname, '../../lib');

/** Calls a function that loads the package anew. */
function isolated(load) {
  if (typeof jest !== 'undefined') return jest.isolateModules(load);
  const isOurs = ([file]) => file.startsWith(LIB);
  const loaded = Object.entries(require.cache).filter(isOurs);
  for (const [file] of loaded) delete require.cache[file];
  load();
  for (const [file] of Object.entries(require.cache).filter(isOurs)) delete require.cache[file];
  Object.assign(require.cache, Object.fromEntries(loaded));
}

/** A copy of the package of its own, on the addon ('native') or on the module ('wasm'). */
function packageOn(binding) {
  const before = process.env.ROLLGATE_BINDING;
  process.env.ROLLGATE_BINDING = binding;
  try {
    let loaded;
    isolated(() => {
      loaded = require('../..');
      loaded({ interval: 1, maxInInterval: 1 }); // loads the binding
    });
    return loaded;
  } finally {
    if (before === undefined) delete process.env.ROLLGATE_BINDING;
    else process.env.ROLLGATE_BINDING = before;
  }
}

module.exports = {
  WASM_FILE,
  addonBinding,
  hasAddon,
  hasNativeRedis,
  newWasmBinding,
  packageOn,
  whereAddon,
};
