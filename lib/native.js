// Loads the native addon; the only file that does.
'use strict';

const path = require('node:path');
const nodeGypBuild = require('node-gyp-build');

/** @type {{ createMemoryLimiter: Function, liveLimiters: () => number }} */
module.exports = nodeGypBuild(path.join(__dirname, '..'));
