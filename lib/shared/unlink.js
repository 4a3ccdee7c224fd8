// Removes regions of shared memory.
'use strict';

const fs = require('node:fs');
const { failure } = require('../errors');
const { loadAddon } = require('../native');
const { failShared, refuseUnsupported } = require('./failures');
const { readRegion } = require('./options');
const { isPartOf } = require('./region');

/**
 * Removes the region that the option `shared` says, and those that rules and routes have made of its name.
 * Limiters that are attached go on among themselves; those that attach later make new ones. What cannot be
 * removed keeps no other from being.
 *
 * @returns {boolean} whether there was any
 */
function unlinkShared(shared) {
  const { directory, name } = readRegion(shared);
  const unlink = loadAddon().unlinkShared;
  if (unlink === undefined) refuseUnsupported();
  let isFound = false;
  let failed;
  const attempt = (remove) => {
    try {
      remove();
    } catch (error) {
      failed ??= error;
    }
  };
  const removeOne = (each) =>
    attempt(() => {
      if (unlink(directory, each, failShared)) isFound = true;
    });
  removeOne(name);
  attempt(() => partsOf(directory, name).forEach(removeOne));
  if (failed !== undefined) throw failed;
  return isFound;
}

/** The names of regions, as their files tell. */
function partsOf(directory, name) {
  const prefix = `rollgate-${process.geteuid()}-`; // PathOf in shared/region.cc
  return namesIn(directory)
    .filter((file) => file.startsWith(prefix))
    .map((file) => file.slice(prefix.length))
    .filter((each) => isPartOf(each, name));
}

function namesIn(directory) {
  try {
    return fs.readdirSync(directory);
  } catch (cause) {
    if (cause.code === 'ENOENT') return [];
    throw failure(
      'ERR_ROLLGATE_SHARED_SYSTEM',
      `cannot read ${directory}: ${cause.message}`,
      cause,
    );
  }
}

module.exports = { unlinkShared };
