// What requests a rule is for: its path, method and group, and whether it leaves any for a later rule.
'use strict';

const { METHODS } = require('node:http');
const { isRegExp } = require('node:util').types;
const { optionRangeError, optionTypeError, show, typeError } = require('../../errors');
const { normalForm } = require('./path');

const SLASH = 47;

/** What means something in the paths of routes. */
const LIKE_PATTERN = /\/:|[*({]/;

const PLAIN_PREFIX =
  "a text without '*', '(', '{' and segments that begin with ':' (it is a prefix, taken as it is; " +
  'for a pattern give a RegExp, for these characters their escapes, such as %2A)';

/** The group of a request that is told of no other. */
const DEFAULT_GROUP = 'default';

/**
 * @typedef {object} Pattern
 * @property {string | undefined} prefix in normal form; undefined with a RegExp
 * @property {RegExp | undefined} regExp nobody else's, so that nobody else moves its lastIndex
 * @property {Set<string> | undefined} methods undefined: every one
 * @property {Set<string> | undefined} groups undefined: every one
 */

/** @returns {Pattern} */
function readPattern({ path, method, group }) {
  return {
    ...readPath(path),
    methods: readMethods(method),
    groups: readTexts('group', group, 'a non-empty string', (text) => text !== ''),
  };
}

function readPath(path) {
  if (isRegExp(path)) return { prefix: undefined, regExp: new RegExp(path) };
  const expected = "a path that begins with '/', without query, or a RegExp";
  if (typeof path !== 'string') throw optionTypeError('path', expected, path);
  if (!/^\/[^?#]*$/.test(path)) throw optionRangeError('path', expected, path);
  if (LIKE_PATTERN.test(path)) throw optionRangeError('path', PLAIN_PREFIX, path);
  return { prefix: normalForm(path), regExp: undefined };
}

/** Routers answer HEAD by the handler of GET, which then must not be a way around a limit. */
function readMethods(method) {
  const isMethod = (text) => METHODS.includes(text.toUpperCase());
  const given = readTexts('method', method, "an HTTP method, such as 'GET'", isMethod);
  if (given === undefined) return undefined;
  const methods = new Set([...given].map((text) => text.toUpperCase()));
  if (methods.has('GET')) methods.add('HEAD');
  return methods;
}

function readTexts(name, value, one, isGood) {
  if (value === undefined) return undefined;
  // A copy first: only what is checked here may be used.
  const texts = Array.isArray(value) ? Array.from(value) : [value];
  const expected = `${one}, or a list of them`;
  if (texts.length === 0) throw optionRangeError(name, expected, value);
  for (const text of texts) {
    if (typeof text !== 'string') throw optionTypeError(name, expected, text);
    if (!isGood(text)) throw optionRangeError(name, expected, text);
  }
  return new Set(texts);
}

function matchesMethod({ methods }, method) {
  return methods === undefined || methods.has(method);
}

function matchesGroup({ groups }, group) {
  return groups === undefined || groups.has(group);
}

/** Whether a path is the prefix or begins with its segments; '' is the beginning of everything. */
function isUnder(path, prefix) {
  if (!path.startsWith(prefix)) return false;
  return prefix === '' || path.length === prefix.length || path.charCodeAt(prefix.length) === SLASH;
}

/** Whether every path that matches `later` matches `earlier`, as far as can be told. */
function coversPath(earlier, later) {
  if (earlier.prefix === '') return true;
  if (earlier.prefix !== undefined) {
    return later.prefix !== undefined && isUnder(later.prefix, earlier.prefix);
  }
  return later.regExp !== undefined && String(earlier.regExp) === String(later.regExp);
}

/** The pairs of method and group that a pattern is for; undefined stands for every one. */
function kindsOf({ methods = [undefined], groups = [undefined] }) {
  return [...methods].flatMap((method) => [...groups].map((group) => ({ method, group })));
}

/** The patterns that leave nothing of this one to it, by their places; undefined if something is left. */
function takersOf(later, patterns) {
  const takers = kindsOf(later).map(({ method, group }) =>
    patterns.findIndex(
      (earlier) =>
        coversPath(earlier, later) &&
        matchesMethod(earlier, method) &&
        matchesGroup(earlier, group),
    ),
  );
  return takers.includes(-1) ? undefined : [...new Set(takers)].sort((a, b) => a - b);
}

/**
 * Refuses rules that can never decide.
 *
 * @param {Pattern[]} patterns in their order
 * @param {boolean} hasGroups whether there is somebody to tell a request's group
 */
function assertReachable(patterns, hasGroups) {
  for (const [i, later] of patterns.entries()) {
    const takers = takersOf(later, patterns.slice(0, i));
    if (takers !== undefined) {
      const names = takers.map((place) => `rules[${place}]`).join(' and ');
      throw unreachable(i, `what it matches is taken by ${names} before it`);
    }
    if (!hasGroups && !matchesGroup(later, DEFAULT_GROUP)) {
      const groups = [...later.groups].map(show).join(', ');
      throw unreachable(i, `without 'authenticate' no request is of the group ${groups}`);
    }
  }
}

function unreachable(i, why) {
  return typeError('ERR_ROLLGATE_OPTION', `option 'rules[${i}]': never reached: ${why}`);
}

/** Text that is the same for the same pattern, and for no other. */
function patternText({ prefix, regExp, methods, groups }) {
  const sorted = (texts) => (texts === undefined ? null : [...texts].sort());
  const path = prefix === undefined ? [regExp.source, regExp.flags] : prefix;
  return JSON.stringify([path, sorted(methods), sorted(groups)]);
}

module.exports = {
  DEFAULT_GROUP,
  assertReachable,
  matchesGroup,
  matchesMethod,
  patternText,
  readPattern,
};
