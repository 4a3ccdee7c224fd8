// Regions of shared memory by their names.
'use strict';

const { createHash } = require('node:crypto');
const path = require('node:path');
const { optionRangeError } = require('../errors');

const DEFAULT_DIRECTORY = '/dev/shm';
const LONGEST_NAME = 200;
const PART_LENGTH = 16;

/** Begins what is added to the name of a region for one of its parts: no other name has it. */
const PART_MARK = '+';
const PART = `[+][A-Za-z0-9_-]{${PART_LENGTH}}`;

const NAME = new RegExp(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:${PART})*$`);

function isName(text) {
  return NAME.test(text) && text.length <= LONGEST_NAME;
}

/** Of two names: whether the first is that of a part of the other, or of a part's part. */
function isPartOf(part, name) {
  return part.startsWith(`${name}${PART_MARK}`) && isName(part);
}

/** Of the option as it was given, checked or not. */
function withName(shared) {
  return typeof shared === 'string' ? { name: shared } : shared;
}

/**
 * The option for a region of its own, one of several that stand side by side under one name: the same for
 * the same `part` in every process.
 */
function partOfRegion(shared, part) {
  // By name, for they may be inherited.
  const { name, directory, maxKeys, ...others } = withName(shared) ?? {};
  const longest = LONGEST_NAME - PART_MARK.length - PART_LENGTH;
  if (typeof name !== 'string') return shared; // and is refused as it is
  if (name.length > longest) {
    const expected = `a name of at most ${longest} characters, of which others are made`;
    throw optionRangeError('shared', expected, name);
  }
  const hash = createHash('sha256').update(part).digest('base64url').slice(0, PART_LENGTH);
  return { ...others, directory, maxKeys, name: `${name}${PART_MARK}${hash}` };
}

/** What tells two regions apart. */
function regionPath(shared) {
  const { name, directory = DEFAULT_DIRECTORY } = withName(shared);
  return path.join(directory, name);
}

module.exports = {
  DEFAULT_DIRECTORY,
  LONGEST_NAME,
  isName,
  isPartOf,
  partOfRegion,
  regionPath,
};
