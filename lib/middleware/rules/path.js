// The path of a request as rules see it, and the form in which two spellings of one path are equal.
'use strict';

const url = require('node:url');
const { unescapePath } = require('./unescape');

/** Among the options: a function (req) in place of pathOf, for a framework that reads URLs in its own way. */
const PATH_OF = Symbol('pathOf');

/** What Express splits at the question mark; all other URLs it gives to url.parse. */
const USUAL = /^\/[^\t\n\f\r #\u00a0\ufeff]*$/;

/** What url.parse takes for a user and a host where a router has cut off all before it. */
const USER_AND_HOST = /\/\/[^/@]+@[^/@]+(?=\/|$)/g;

/**
 * The whole path, whatever router the middleware is in, without the query and as it came. Where a URL
 * looks odd, Express routes by what it makes of it: `/api#x`, `http://host/api`, `//a@b/api#` and `/\api#`
 * may all reach /api, so they must be seen as that.
 */
function pathOf(req) {
  const text = String(req.originalUrl || req.url || '/');
  if (USUAL.test(text)) return withoutQuery(text);
  const { pathname } = parse(text);
  return pathname?.replace(USER_AND_HOST, '') || '/';
}

function parse(text) {
  try {
    return url.parse(text);
  } catch {
    // Express finds no route for it.
    return { pathname: withoutQuery(text) };
  }
}

function withoutQuery(text) {
  const end = text.indexOf('?');
  return end === -1 ? text : text.slice(0, end);
}

/**
 * Lower case, unescaped, slashes that follow one another as one, without one at the end: routers take such
 * paths for one, in what they match or in the parameters they find. (Express 4 passes over a second slash
 * behind the path of a router.) `/` becomes ''. Dots stay: Express goes nowhere by them, and for what
 * does there are the forms of forms.js.
 */
function normalForm(path) {
  const unescaped = path.includes('%') ? unescapePath(path) : path;
  const single = unescaped.includes('//') ? unescaped.replace(/\/{2,}/g, '/') : unescaped;
  const lower = single.toLowerCase();
  return lower.endsWith('/') ? lower.slice(0, -1) : lower;
}

module.exports = { PATH_OF, normalForm, pathOf };
