// Creates dist/sea/app, an executable with Node and the bundle dist/sea-build/app.js.
'use strict';

const { execFileSync } = require('node:child_process');
const { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { inject } = require('postject');

const config = {
  main: 'dist/sea-build/app.js',
  output: 'dist/sea-build/app.blob',
  disableExperimentalSEAWarning: true,
};
const executable = 'dist/sea/app';

writeFileSync('dist/sea-build/config.json', JSON.stringify(config));
execFileSync(process.execPath, ['--experimental-sea-config', 'dist/sea-build/config.json']);
mkdirSync('dist/sea', { recursive: true });
copyFileSync(process.execPath, executable);
chmodSync(executable, 0o755);
inject(executable, 'NODE_SEA_BLOB', readFileSync(config.output), {
  sentinelFuse: 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2', // Node's documentation names it
});
