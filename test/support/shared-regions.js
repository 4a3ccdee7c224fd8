// Regions of shared memory for tests: names that nobody else has. In Jest all of them are removed at the end.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../..');
const { loadBinding } = require('../../lib/native');

/** Whether this process can have regions. */
const hasShared = loadBinding().createSharedLimiter !== undefined;

const DIRECTORY = '/dev/shm';
let made = 0;
const names = new Set();

/** The name of a region that is not there yet. */
function newName() {
  made += 1;
  const name = `test-${process.pid}-${made}`;
  names.add(name);
  return name;
}

/** The files of the regions whose names begin so, with those of rules and routes. */
function filesOf(name, directory = DIRECTORY) {
  const isOf = (file) => /^rollgate-\d+-/.test(file) && file.includes(`-${name}`);
  return fs
    .readdirSync(directory)
    .filter(isOf)
    .sort()
    .map((file) => path.join(directory, file));
}

function removeAll() {
  for (const name of names) {
    for (const file of filesOf(name)) {
      RateLimiter.unlinkShared(path.basename(file).replace(/^rollgate-\d+-/, ''));
    }
  }
  names.clear();
}

globalThis.afterAll?.(removeAll);

/**
 * Source of a function for programs of their own: how many mappings and open files of this process are of
 * the region.
 */
const ATTACHMENTS_OF = `
  function attachmentsOf(name) {
    const fs = require('node:fs');
    const isOf = (text) => text.includes('/rollgate-') && text.includes(name);
    const maps = fs.readFileSync('/proc/self/maps', 'utf8').split('\\n').filter(isOf).length;
    const links = fs.readdirSync('/proc/self/fd').map((fd) => {
      try { return fs.readlinkSync('/proc/self/fd/' + fd); } catch { return ''; } // closed meanwhile
    });
    return { maps, files: links.filter(isOf).length };
  }
`;

module.exports = { ATTACHMENTS_OF, filesOf, hasShared, newName };
