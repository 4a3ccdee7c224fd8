// Which requests a rule matches by path, method and group, and which rule is the first to match a request.
'use strict';

const { methods: knownMethods } = require('#platform');
const { optionError, optionRangeError, show } = require('../../../base/errors');
const { readString } = require('../../../options/values');
const { DEFAULT_GROUP } = require('../caller');
const { normalForm } = require('./paths');

const SLASH = 47;

/** Characters with a meaning in the paths of routes. */
const LIKE_PATTERN = /\/:|[*({]/;

const PLAIN_PREFIX =
  "a plain path prefix ('*', '(', '{' and ':name' are not patterns here: use a RegExp, or escape them, such as %2A)";

/**
 * @typedef {object} Pattern
 * @property {string | undefined} prefix in normal form; undefined with a RegExp
 * @property {RegExp | undefined} regExp a copy, so that nobody else moves its lastIndex
 * @property {Set<string> | undefined} methods undefined: all
 * @property {Set<string> | undefined} groups undefined: all
 */

/** @returns {Pattern} */
function readPattern({ path, method, group }) {
  return {
    ...readPath(path),
    methods: readMethods(method),
    groups: readStrings('group', group, 'a non-empty string', (group) => group !== ''),
  };
}

function readPath(path) {
  if (Object.prototype.toString.call(path) === '[object RegExp]') {
    return { prefix: undefined, regExp: new RegExp(path) };
  }
  const expected = "a path that begins with '/', without query, or a RegExp";
  readString('path', path, expected, (string) => /^\/[^?#]*$/.test(string));
  if (LIKE_PATTERN.test(path)) throw optionRangeError('path', PLAIN_PREFIX, path);
  return { prefix: normalForm(path), regExp: undefined };
}

/** Routers answer HEAD by the handler of GET, so a limit on GET includes HEAD. */
function readMethods(method) {
  const isMethod = (name) => knownMethods().includes(name.toUpperCase());
  const given = readStrings('method', method, "an HTTP method, such as 'GET'", isMethod);
  if (given === undefined) return undefined;
  const methods = new Set([...given].map((name) => name.toUpperCase()));
  if (methods.has('GET')) methods.add('HEAD');
  return methods;
}

function readStrings(name, given, one, isGood) {
  if (given === undefined) return undefined;
  // A copy first: only what is checked here may be used.
  const values = Array.isArray(given) ? Array.from(given) : [given];
  const expected = `${one}, or a list of them`;
  if (values.length === 0) throw optionRangeError(name, expected, given);
  return new Set(values.map((value) => readString(name, value, expected, isGood)));
}

/** Whether a set of a pattern has this method or group; undefined has all. */
function includes(set, name) {
  return set === undefined || set.has(name);
}

/** Whether a path is the prefix or is below it; '' is the prefix of every path. */
function isUnder(path, prefix) {
  if (!path.startsWith(prefix)) return false;
  return prefix === '' || path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH;
}

/** Whether every path that matches `later` also matches `earlier`; false if that cannot be decided. */
function coversPath(earlier, later) {
  if (earlier.prefix === '') return true;
  if (earlier.prefix !== undefined) {
    return later.prefix !== undefined && isUnder(later.prefix, earlier.prefix);
  }
  return later.regExp !== undefined && String(earlier.regExp) === String(later.regExp);
}

/** The pairs of method and group of a pattern; undefined means all. */
function kindsOf({ methods = [undefined], groups = [undefined] }) {
  return [...methods].flatMap((method) => [...groups].map((group) => ({ method, group })));
}

/** The indexes of the rules that together take whatever `later` matches; undefined if they do not. */
function coverOf(later, rules) {
  const cover = kindsOf(later).map(({ method, group }) =>
    rules.findIndex(
      ({ pattern: earlier, isShadow }) =>
        !isShadow &&
        coversPath(earlier, later) &&
        includes(earlier.methods, method) &&
        includes(earlier.groups, group),
    ),
  );
  return cover.includes(-1) ? undefined : [...new Set(cover)].sort((a, b) => a - b);
}

/**
 * Throws for rules that are never reached. A shadow rule hides none.
 *
 * @param {{ pattern: Pattern, isShadow: boolean }[]} rules in their order
 * @param {boolean} hasGroups whether authenticate gives requests a group
 */
function assertReachable(rules, hasGroups) {
  for (const [i, { pattern: later }] of rules.entries()) {
    const cover = coverOf(later, rules.slice(0, i));
    if (cover !== undefined) {
      const names = cover.map((place) => `rules[${place}]`).join(' and ');
      throw optionError(
        `rules[${i}]`,
        `never reached: what it matches is taken by ${names} before it`,
      );
    }
    if (!hasGroups && !includes(later.groups, DEFAULT_GROUP)) {
      const groups = [...later.groups].map(show).join(', ');
      const why = `without 'authenticate' no request is of the group ${groups}`;
      throw optionError(`rules[${i}]`, `never reached: ${why}`);
    }
  }
}

/** A string that is equal for equal patterns only. */
function patternToString({ prefix, regExp, methods, groups }) {
  const sorted = (names) => (names === undefined ? null : [...names].sort());
  const path = prefix === undefined ? [regExp.source, regExp.flags] : prefix;
  return JSON.stringify([path, sorted(methods), sorted(groups)]);
}

const NONE = -1;

/**
 * A function find(from, target, group) that returns the index of the first rule at or after `from` that matches the
 * target, and the group if one is given; NONE if there is none. `target` has the path, its normal form and the method.
 *
 * Prefixes are looked up, so that hundreds of them are as cheap as a few; RegExps are tried in order.
 *
 * @param {Pattern[]} patterns
 */
function createFinder(patterns) {
  const byPrefix = new Map();
  const regExps = [];
  for (const [i, { prefix }] of patterns.entries()) {
    if (prefix === undefined) regExps.push(i);
    else byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), i]);
  }
  const longest = Math.max(...[...byPrefix.keys()].map(({ length }) => length));

  function isFor({ methods, groups }, { method }, group) {
    return includes(methods, method) && (group === undefined || includes(groups, group));
  }

  function findPrefix(from, target, group) {
    const path = target.normal;
    const isGood = (i) => i >= from && isFor(patterns[i], target, group);
    let least = Infinity;
    for (let end = 0; end <= longest; end = endOfSegment(path, end)) {
      const found = byPrefix.get(path.slice(0, end))?.find(isGood);
      if (found < least) least = found;
    }
    return least;
  }

  return function find(from, target, group) {
    const least = findPrefix(from, target, group);
    for (let k = 0; k < regExps.length && regExps[k] < least; k++) {
      const i = regExps[k];
      if (i < from || !isFor(patterns[i], target, group)) continue;
      const { regExp } = patterns[i];
      regExp.lastIndex = 0; // of a RegExp with the flag g or y
      if (regExp.test(target.path)) return i;
    }
    return least === Infinity ? NONE : least;
  };
}

/** Where the segment of a path ends that begins at `start`; Infinity if there is none. */
function endOfSegment(path, start) {
  if (path.charCodeAt(start) !== SLASH) return Infinity;
  const slash = path.indexOf('/', start + 1);
  return slash === -1 ? path.length : slash;
}

module.exports = { NONE, assertReachable, createFinder, patternToString, readPattern };
