// The core as WebAssembly in place of the addon: the functions that the stores create limiters with.
'use strict';

const { Core } = require('./core');
const { wasmError } = require('./errors');
const { createMemoryLimiter } = require('./memory-limiter');
const { createPortableLimiter } = require('./portable-limiter');

/** The functions of src/binding/addon.h that the module has. One instance serves all limiters of the realm. */
function createBinding(module) {
  const core = createCore(module);
  return {
    isWasm: true,
    createMemoryLimiter: (options, callbacks) => createMemoryLimiter(core, options, callbacks),
    createPortableLimiter: (options, callbacks) => createPortableLimiter(core, options, callbacks),
    liveLimiters: () => core.live,
  };
}

/** @throws Error ERR_ROLLGATE_WASM for another module */
function createCore(module) {
  try {
    return new Core(module);
  } catch (error) {
    throw wasmError(error.message, error);
  }
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

module.exports = { compile, createBinding };
