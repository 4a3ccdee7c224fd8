// The paths that one path may stand for: as it is, and as those take it that resolve dot segments.
'use strict';

const { normalForm } = require('./path');
const { unescapeAs } = require('./unescape');

const DOT = 46;

/** Backslashes, escapes of slashes of either kind, and dot segments. */
const AMBIGUOUS = /\\|%(?:2f|5c)|\/(?:\.|%2e){1,2}(?:\/|$)/i;

/**
 * What resolves a path behind a middleware: files as express.static and others look for them, on Windows
 * and elsewhere, and URLs as `new URL()` reads them, where an escape is no slash and nothing between two
 * slashes is a segment. Which it is nobody knows here.
 */
const READINGS = [
  { unescapesSlashes: true, takesBackslashes: true, countsEmpty: false },
  { unescapesSlashes: true, takesBackslashes: false, countsEmpty: false },
  { unescapesSlashes: false, takesBackslashes: true, countsEmpty: true },
];

/** The first two are one where there are none. */
const BACKSLASHES = /\\|%5c/i;
const READINGS_WITHOUT_BACKSLASHES = READINGS.slice(1);

/**
 * All of them in normal form, the path as it is last. Of usual paths there is that one alone.
 *
 * @returns {string[]}
 */
function formsOf(path) {
  const normal = normalForm(path);
  if (!isAmbiguous(path)) return [normal];
  const readings = BACKSLASHES.test(path) ? READINGS : READINGS_WITHOUT_BACKSLASHES;
  return [...new Set([...readings.map((reading) => resolve(path, reading)), normal])];
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
  let start = path.startsWith('/') ? 1 : 0;
  while (start <= path.length) {
    const slash = path.indexOf('/', start);
    const end = slash === -1 ? path.length : slash;
    const dots = dotsOf(path, start, end);
    if (dots === 2) segments.pop();
    else if (dots === 0 && (countsEmpty || end > start)) segments.push(path.slice(start, end));
    start = end + 1;
  }
  const names = countsEmpty ? segments.filter((segment) => segment !== '') : segments;
  return names.length === 0 ? '' : `/${names.join('/')}`;
}

/** 1 and 2 for the segments that are dots, 0 for those that are names. */
function dotsOf(path, start, end) {
  const length = end - start;
  if (length === 0 || length > 2 || path.charCodeAt(start) !== DOT) return 0;
  return length === 1 || path.charCodeAt(start + 1) === DOT ? length : 0;
}

module.exports = { formsOf };
