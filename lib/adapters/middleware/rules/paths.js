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

const PERCENT = 37;
const SLASH = 47;
const BACKSLASH = 92;

/** The least code point with so many continuation bytes in UTF-8. */
const LEAST = [0, 0x80, 0x800, 0x10000];

/**
 * Decodes escapes of UTF-8, except the percent sign, which would begin another escape, and the slash, which
 * would separate segments. Decoded by hand: with decodeURIComponent each invalid escape would cost an exception,
 * and an attacker could send many.
 */
function unescapePath(path) {
  return unescapeAs(path, { unescapesSlashes: false, takesBackslashes: false });
}

/** `unescapesSlashes`: an escaped slash separates segments; `takesBackslashes`: a backslash is a slash. */
function unescapeAs(path, { unescapesSlashes, takesBackslashes }) {
  const source = takesBackslashes ? path.split('\\').join('/') : path;
  let unescaped = '';
  let copied = 0;
  for (let at = source.indexOf('%'); at !== -1; at = source.indexOf('%', at)) {
    const point = escapedAt(source, at);
    if (point === -1 || point === PERCENT || (point === SLASH && !unescapesSlashes)) {
      at += 1;
      continue;
    }
    const isSlash = point === BACKSLASH && unescapesSlashes && takesBackslashes;
    if (at > copied) unescaped += source.slice(copied, at);
    unescaped += String.fromCodePoint(isSlash ? SLASH : point);
    at += 3 * (1 + LEAST.findLastIndex((least) => point >= least));
    copied = at;
  }
  return copied === 0 ? source : unescaped + source.slice(copied);
}

/** The code point whose escapes begin here; -1 if there are none, or if they are not UTF-8. */
function escapedAt(path, at) {
  const first = byteAt(path, at);
  if (first < 0x80) return first;
  if (first < 0xc2 || first > 0xf4) return -1;
  const following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  let point = first & (0x3f >> following);
  for (let k = 1; k <= following; k++) {
    const byte = byteAt(path, at + 3 * k);
    if (byte === -1 || byte >> 6 !== 0b10) return -1;
    point = (point << 6) | (byte & 0x3f);
  }
  const isSurrogate = point >= 0xd800 && point <= 0xdfff;
  return point < LEAST[following] || isSurrogate || point > 0x10ffff ? -1 : point;
}

/** -1 if there is no escape. */
function byteAt(path, at) {
  if (path.charCodeAt(at) !== PERCENT) return -1;
  const high = hexDigit(path.charCodeAt(at + 1));
  const low = hexDigit(path.charCodeAt(at + 2));
  return high === -1 || low === -1 ? -1 : high * 16 + low;
}

function hexDigit(code) {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

module.exports = { PATH_OF, formsOf, normalForm, pathOf, unescapePath };
