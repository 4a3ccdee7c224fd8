// Copies rollgate's addon next to a bundle: node copy-addon.js <folder of the bundle>
'use strict';

const { copyFileSync } = require('node:fs');
const { join } = require('node:path');
const { addonPath } = require('rollgate');

copyFileSync(addonPath(), join(process.argv[2], 'rollgate.node'));
