// Removes regions of shared memory.
'use strict';

const native = require('../native');
const { failShared, refuseUnsupported } = require('./failures');
const { readRegion } = require('./options');

/**
 * Removes the region that the option `shared` says. Limiters that are attached go on with it among
 * themselves; those that attach later make a new one.
 *
 * @returns {boolean} whether there was one
 */
function unlinkShared(shared) {
  const { directory, name } = readRegion(shared);
  if (native.unlinkShared === undefined) refuseUnsupported();
  return native.unlinkShared(directory, name, failShared);
}

module.exports = { unlinkShared };
