// The option shared: where a region of shared memory is, and how many ids it is made for.
'use strict';

const path = require('node:path');
const { optionRangeError, optionTypeError, show, typeError } = require('../errors');
const { readNumber, rejectUnknownOptions } = require('../option-values');
const { isWellFormed } = require('../ids');
const { DEFAULT_DIRECTORY, LONGEST_NAME, isName } = require('./region');

const NAMES = ['name', 'maxKeys', 'directory'];
/** Room for these is reserved at once: with common limits they fit into the 64 MB that containers have. */
const DEFAULT_MAX_KEYS = 50_000;
/** Larger regions could not be addressed, whatever the limits. */
const MOST_KEYS = 2 ** 32;

function readName(place, name) {
  const expected =
    `a name of 1 to ${LONGEST_NAME} letters, digits, '.', '_' and '-' that does not begin with ` +
    "'.'";
  if (typeof name !== 'string') throw optionTypeError(place, expected, name);
  if (!isName(name)) throw optionRangeError(place, expected, name);
  return name;
}

function readDirectory(directory = DEFAULT_DIRECTORY) {
  const expected = 'the absolute path of a directory';
  if (typeof directory !== 'string') throw optionTypeError('shared.directory', expected, directory);
  const isPath = path.isAbsolute(directory) && !directory.includes('\0') && isWellFormed(directory);
  if (!isPath) throw optionRangeError('shared.directory', expected, directory);
  return path.resolve(directory);
}

function readMaxKeys(name, maxKeys) {
  if (maxKeys === undefined) return undefined;
  const isInRange = (n) => Number.isInteger(n) && n >= 1 && n <= MOST_KEYS;
  return readNumber(name, maxKeys, `an integer from 1 to ${MOST_KEYS} in shared memory`, isInRange);
}

/**
 * @param {unknown} shared a name, or `{ name, maxKeys, directory }`
 * @returns {{ name: string, directory: string, maxKeys: number | undefined }}
 */
function readRegion(shared) {
  if (typeof shared === 'string') {
    return { name: readName('shared', shared), directory: readDirectory(), maxKeys: undefined };
  }
  if (typeof shared !== 'object' || shared === null || Array.isArray(shared)) {
    throw optionTypeError('shared', 'a name, or { name, maxKeys, directory }', shared);
  }
  rejectUnknownOptions(shared, NAMES, { place: 'shared' });
  return {
    name: readName('shared.name', shared.name),
    directory: readDirectory(shared.directory),
    maxKeys: readMaxKeys('shared.maxKeys', shared.maxKeys),
  };
}

/** The same of a limiter's options, where `maxKeys` may stand at the top as well. */
function readSharedOptions({ shared, maxKeys }) {
  const region = readRegion(shared);
  readMaxKeys('maxKeys', maxKeys);
  if (region.maxKeys !== undefined && maxKeys !== undefined && region.maxKeys !== maxKeys) {
    throw typeError(
      'ERR_ROLLGATE_OPTION',
      "options 'maxKeys' and 'shared.maxKeys': expected one of them, which mean the same, got " +
        `${show(maxKeys)} and ${show(region.maxKeys)}`,
    );
  }
  return { ...region, maxKeys: region.maxKeys ?? maxKeys ?? DEFAULT_MAX_KEYS };
}

module.exports = { readRegion, readSharedOptions };
