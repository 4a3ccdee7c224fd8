// The paths that one path may stand for: as it is, and as those take it that resolve dot segments.
'use strict';

const { normalForm } = require('./path');
const { unescapePath } = require('./unescape');

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

/**
 * All of them in normal form, the path as it is last. Of usual paths there is that one alone.
 *
 * @returns {string[]}
 */
function formsOf(path) {
  const normal = normalForm(path);
  if (!isAmbiguous(path)) return [normal];
  return [...new Set([...READINGS.map((reading) => resolve(path, reading)), normal])];
}

function isAmbiguous(path) {
  const mayBe = path.includes('%') || path.includes('/.') || path.includes('\\');
  return mayBe && AMBIGUOUS.test(path);
}

function resolve(path, { unescapesSlashes, takesBackslashes, countsEmpty }) {
  const whole = unescapesSlashes ? path.replace(/%2f/gi, '/').replace(/%5c/gi, '\\') : path;
  const text = unescapePath(takesBackslashes ? whole.replaceAll('\\', '/') : whole);
  const segments = [];
  for (const segment of text.replace(/^\//, '').split('/')) {
    if (segment === '..') segments.pop();
    else if (segment !== '.' && (countsEmpty || segment !== '')) segments.push(segment);
  }
  const named = segments.filter((segment) => segment !== '');
  return named
    .map((segment) => `/${segment}`)
    .join('')
    .toLowerCase();
}

module.exports = { formsOf };
