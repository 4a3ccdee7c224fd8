// The WebAssembly module for browsers: as text, because it is one file less to serve.
'use strict';

const { compile } = require('../wasm');
const text = require('../wasm/embedded');

exports.default = () => {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return compile(bytes, 'the embedded module');
};
