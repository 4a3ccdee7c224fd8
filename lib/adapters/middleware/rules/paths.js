// The path of a request as rules see it: what it is, its normal form, and the paths it may resolve to.
'use strict';

const { parseUrl } = require('#platform');

/** An internal option: a function (req) that replaces pathOf, for a framework that parses URLs differently. */
const PATH_OF = Symbol('pathOf');

/** Express splits such URLs at the question mark, and passes all others to Node's url.parse. */
const USUAL = /^\/[^\t\n\f\r #\u00a0\ufeff]*$/;

/** What url.parse reads as a user and a host after a router has removed what precedes it. */
const USER_AND_HOST = /\/\/[^/@]+@[^/@]+(?=\/|$)/g;

/**
 * The whole path, even inside a router, without the query and not normalized. Express routes an unusual URL by
 * its parsed form: `/api#x`, `http://host/api`, `//a@b/api#` and `/\api#` may all reach /api, so rules must see
 * them as that.
 */
function pathOf(req) {
  const target = String(req.originalUrl || req.url || '/');
  if (USUAL.test(target)) return withoutQuery(target);
  const { pathname } = parse(target);
  return pathname?.replace(USER_AND_HOST, '') || '/';
}

function parse(target) {
  try {
    return parseUrl(target);
  } catch {
    // Express finds no route for it.
    return { pathname: withoutQuery(target) };
  }
}

function withoutQuery(target) {
  const end = target.indexOf('?');
  return end === -1 ? target : target.slice(0, end);
}

/**
 * The form in which two spellings of one path are equal: lower case, unescaped, repeated slashes as one, no
 * trailing slash. Routers treat such paths as equal, in what they match or in the parameters they extract.
 * (Express 4 skips a second slash after the path of a router.) `/` becomes ''. Dot segments stay, because
 * Express does not resolve them; formsOf covers what does.
 */
function normalForm(path) {
  const unescaped = path.includes('%') ? unescapePath(path) : path;
  const single = unescaped.includes('//') ? unescaped.replace(/\/{2,}/g, '/') : unescaped;
  const lower = single.toLowerCase();
  return lower.endsWith('/') ? lower.slice(0, -1) : lower;
}

/** Backslashes, escaped slashes and backslashes, and dot segments. */
const AMBIGUOUS = /\\|%(?:2f|5c)|\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * The ways in which code after the middleware may resolve a path, of which it does not know the right one: file
 * servers such as express.static, on Windows and elsewhere, and `new URL()`, for which an escaped slash is no
 * slash and an empty string between two slashes is a segment.
 */
const READINGS = [
  { unescapesSlashes: true, takesBackslashes: true, countsEmpty: false },
  { unescapesSlashes: true, takesBackslashes: false, countsEmpty: false },
  { unescapesSlashes: false, takesBackslashes: true, countsEmpty: true },
];

/** The paths that a path may resolve to, in normal form, its own last. A usual path has only that one. */
function formsOf(path) {
  const normal = normalForm(path);
  if (!isAmbiguous(path)) return [normal];
  return [...new Set([...READINGS.map((reading) => resolve(path, reading)), normal])];
}

function isAmbiguous(path) {
  const mayBe = path.includes('%') || path.includes('/.') || path.includes('\\');
  return mayBe && AMBIGUOUS.test(path);
}

function resolve(path, reading) {
  return withoutDots(unescapeAs(path, reading), reading.countsEmpty).toLowerCase();
}

function withoutDots(path, countsEmpty) {
  const segments = [];
  for (const segment of path.replace(/^\//, '').split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '.' && (countsEmpty || segment !== '')) segments.push(segment);
  }
  return segments.map((segment) => segment && `/${segment}`).join('');
}

/** The escapes of one character in well-formed UTF-8: RFC 3629, section 4. `T` is a byte after the first. */
const CHARACTER = [
  '%[0-7][0-9a-f]',
  '%(?:c[2-9a-f]|d[0-9a-f])T',
  '%(?:e0%[ab][0-9a-f]|ed%[89][0-9a-f]|e[1-9a-cef]T)T',
  '%(?:f0%[9ab][0-9a-f]|f[1-3]T|f4%8[0-9a-f])TT',
]
  .join('|')
  .replaceAll('T', '%[89ab][0-9a-f]');

/** An escaped percent sign stays, because it would begin another escape. */
const ESCAPES = new RegExp(`(?:(?!%25)(?:${CHARACTER}))+`, 'gi');
const ESCAPES_BUT_SLASHES = new RegExp(`(?:(?!%25|%2f)(?:${CHARACTER}))+`, 'gi');

/** Decodes escapes of UTF-8, except the slash, which would separate segments. */
function unescapePath(path) {
  return unescapeAs(path, { unescapesSlashes: false, takesBackslashes: false });
}

/**
 * `unescapesSlashes`: an escaped slash separates segments; `takesBackslashes`: a backslash is a slash. Only what is
 * well-formed reaches decodeURIComponent: each exception would cost time, and an attacker could send many.
 */
function unescapeAs(path, { unescapesSlashes, takesBackslashes }) {
  const source = takesBackslashes ? path.replaceAll('\\', '/') : path;
  if (!unescapesSlashes) return source.replace(ESCAPES_BUT_SLASHES, decodeURIComponent);
  const unescaped = source.replace(ESCAPES, decodeURIComponent);
  return takesBackslashes ? unescaped.replaceAll('\\', '/') : unescaped;
}

module.exports = { PATH_OF, formsOf, normalForm, pathOf, unescapePath };
