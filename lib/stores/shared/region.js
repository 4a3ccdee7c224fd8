// Regions of shared memory: the option shared, their names and parts, and their removal.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { failure, optionRangeError, show, typeError } = require('../../base/errors');
const { isWellFormed } = require('../../base/ids');
const { loadBinding } = require('../../native');
const {
  readInteger,
  readObject,
  readString,
  rejectUnknownOptions,
} = require('../../options/values');
const { LONGEST_LOG, throwSharedError, throwUnsupported } = require('./store');

const DEFAULT_DIRECTORY = '/dev/shm';
const LONGEST_NAME = 200;
const PART_LENGTH = 16;

/** Begins the suffix of the name of a region's part; no other name contains it. */
const PART_MARK = '+';
const PART = `[+][A-Za-z0-9_-]{${PART_LENGTH}}`;

const NAME = new RegExp(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:${PART})*$`);

function isName(string) {
  return NAME.test(string) && string.length <= LONGEST_NAME;
}

/** Whether the first name is that of a part of the second one, or of a part of a part. */
function isPartOf(part, name) {
  return part.startsWith(`${name}${PART_MARK}`) && isName(part);
}

/** `shared` may be unchecked. */
function withName(shared) {
  return typeof shared === 'string' ? { name: shared } : shared;
}

/** The option for a region of its own under a common name: equal for the same `part` in every process. */
function partOfRegion(shared, part) {
  // By name, because the properties may be inherited.
  const { name, directory, maxKeys, room, ...others } = withName(shared) ?? {};
  const longest = LONGEST_NAME - PART_MARK.length - PART_LENGTH;
  if (typeof name !== 'string') return shared; // readSharedOptions rejects it
  if (name.length > longest) {
    const expected = `a name of at most ${longest} characters, of which others are made`;
    throw optionRangeError('shared', expected, name);
  }
  const hash = createHash('sha256').update(part).digest('base64url').slice(0, PART_LENGTH);
  return { ...others, directory, maxKeys, room, name: `${name}${PART_MARK}${hash}` };
}

/** Identifies a region. */
function regionPath(shared) {
  const { name, directory = DEFAULT_DIRECTORY } = withName(shared);
  return path.join(directory, name);
}

const OPTION_NAMES = ['name', 'maxKeys', 'room', 'directory'];
/** Somewhat more fits into a region, whatever the limits. */
const MOST_KEYS = 200_000_000;

function readName(place, name) {
  const expected =
    `a name of 1 to ${LONGEST_NAME} letters, digits, '.', '_' and '-' that does not begin with ` +
    "'.'";
  return readString(place, name, expected, isName);
}

function isDirectory(string) {
  return path.isAbsolute(string) && !string.includes('\0') && isWellFormed(string);
}

function readDirectory(directory = DEFAULT_DIRECTORY) {
  const expected = 'the absolute path of a directory';
  return path.resolve(readString('shared.directory', directory, expected, isDirectory));
}

function readMaxKeys(name, maxKeys) {
  if (maxKeys === undefined) return undefined;
  return readInteger(name, maxKeys, 1, MOST_KEYS, ' in shared memory');
}

function readRoom(name, room) {
  if (room === undefined) return undefined;
  return readInteger(name, room, 1, LONGEST_LOG, ' in shared memory');
}

function readRegion(shared) {
  if (typeof shared === 'string') {
    return { name: readName('shared', shared), directory: readDirectory() };
  }
  readObject('shared', shared, 'a name, or { name, maxKeys, room, directory }');
  rejectUnknownOptions(shared, OPTION_NAMES, { place: 'shared' });
  return {
    name: readName('shared.name', shared.name),
    directory: readDirectory(shared.directory),
    maxKeys: readMaxKeys('shared.maxKeys', shared.maxKeys),
    room: readRoom('shared.room', shared.room),
  };
}

/** The same for the options of a limiter, where `maxKeys` may be at the top level as well. */
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
  return { ...region, maxKeys: region.maxKeys ?? maxKeys };
}

/**
 * Removes the region of the option `shared` and those that rules and routes derived from its name. Attached
 * limiters keep sharing the old region; later ones create a new one. If one removal fails, the others are still
 * made. Returns whether a region was found.
 */
function unlinkShared(shared) {
  const { directory, name } = readRegion(shared);
  const unlink = loadBinding().unlinkShared;
  if (unlink === undefined) throwUnsupported();
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
      if (unlink(directory, each, throwSharedError)) isFound = true;
    });
  removeOne(name);
  attempt(() => partsOf(directory, name).forEach(removeOne));
  if (failed !== undefined) throw failed;
  return isFound;
}

/** The names of the parts that have files. */
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

module.exports = {
  partOfRegion,
  readSharedOptions,
  regionPath,
  unlinkShared,
};
