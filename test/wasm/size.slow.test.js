// How large the module is for those who load it.
'use strict';

const fs = require('node:fs');
const { gzipSync } = require('node:zlib');
const { WASM_FILE } = require('../support/bindings');

// Kills: another form of each algorithm in the module.
test('the module takes less than 72 KB, compressed with gzip', () => {
  expect(gzipSync(fs.readFileSync(WASM_FILE), { level: 9 }).length).toBeLessThan(72 * 1024);
});
