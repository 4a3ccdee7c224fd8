// Instead of the WebAssembly module where edge-light.mjs was not imported.
'use strict';

const { wasmError } = require('../wasm');

exports.default = () => {
  throw wasmError('the Edge Runtime needs `import` in place of `require`');
};
