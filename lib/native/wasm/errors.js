// Why the WebAssembly module cannot be used.
'use strict';

const { failure } = require('../../base/errors');

/** The module is missing or not rollgate's, or WebAssembly is forbidden. */
function wasmError(reason, cause) {
  return failure(
    'ERR_ROLLGATE_WASM',
    `rollgate's WebAssembly module cannot be used: ${reason}`,
    cause,
  );
}

module.exports = { wasmError };
