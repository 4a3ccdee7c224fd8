// Where Jest looks for tests. One setting for all of them; what a single suite needs it sets itself.
'use strict';

const { patience } = require('./test/support/tiers.js');

const folders = [
  'lib',
  'middleware',
  'redis',
  'kv',
  'wasm',
  'shared',
  'conformance',
  'corpus',
  'examples',
  'package',
  'soak',
  'bench',
  'slots',
];

module.exports = {
  testEnvironment: 'node',
  testMatch: folders.map((folder) => `<rootDir>/test/${folder}/**/*.test.js`),
  modulePathIgnorePatterns: ['<rootDir>/build/'],
  testTimeout: 120_000 * patience,
  maxWorkers: 3, // on two cores, because many tests wait for servers
};
