// The entry for browsers, and for all who bundle for them: the WebAssembly module is text.
'use strict';

const host = require('#host');
const { compile } = require('./wasm');

host.useModule(() => {
  const text = atob(require('./wasm/embedded'));
  return compile(
    Uint8Array.from(text, (character) => character.charCodeAt(0)),
    'the embedded module',
  );
});

module.exports = require('./web');
