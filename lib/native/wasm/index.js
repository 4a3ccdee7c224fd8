// The core as WebAssembly in place of the addon: the functions that the stores create limiters with.
'use strict';

const { failure } = require('../../base/errors');
const { Core } = require('./core');
const { createHeldCounts } = require('./held-counts');
const { createMemoryLimiter } = require('./memory-limiter');
const { createPortableLimiter } = require('./portable-limiter');

/** Why the module cannot be used: it is missing or not rollgate's, or WebAssembly is forbidden. */
function wasmError(reason, cause) {
  const message = `rollgate's WebAssembly module cannot be used: ${reason}`;
  return failure('ERR_ROLLGATE_WASM', message, cause);
}

/**
 * The functions of src/binding/addon.h that the module has. One instance serves all limiters of the realm.
 *
 * @throws Error ERR_ROLLGATE_WASM for another module
 */
function createBinding(module) {
  let core;
  try {
    core = new Core(module);
  } catch (error) {
    throw wasmError(error.message, error);
  }
  return {
    isWasm: true,
    createMemoryLimiter: (options, callbacks) => createMemoryLimiter(core, options, callbacks),
    createPortableLimiter: (policy, callbacks) => createPortableLimiter(core, policy, callbacks),
    createHeldCounts: (maxKeys, callbacks) => createHeldCounts(core, maxKeys, callbacks),
    liveLimiters: () => core.live,
  };
}

/**
 * `name` says where the bytes are from.
 *
 * @throws Error ERR_ROLLGATE_WASM for bytes of something else, or where WebAssembly is forbidden
 */
function compile(bytes, name) {
  if (typeof WebAssembly === 'undefined') throw wasmError('this host has no WebAssembly');
  try {
    return new WebAssembly.Module(bytes);
  } catch (error) {
    throw wasmError(`${name}: ${error.message}`, error);
  }
}

module.exports = { compile, createBinding, wasmError };
