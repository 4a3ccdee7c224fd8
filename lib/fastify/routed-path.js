// The path that Fastify routes a request by, which is the one that rules must go by.
'use strict';

const { failure } = require('../errors');

const ABSOLUTE = /^https?:\/\//i;

/**
 * A function (request) that gives the path behind `rewriteUrl`, as it came, without the query.
 *
 * @param {object} fastify
 */
function createRoutedPath({ initialConfig }) {
  const end = hasSemicolons(initialConfig) ? /[?#;]/ : /[?#]/;
  return ({ raw: { url } }) => {
    const path = ABSOLUTE.test(url) ? withoutHost(url) : url;
    const length = path.search(end);
    return length === -1 ? path : path.slice(0, length);
  };
}

/** Beside the one that was given, Fastify shows the default of the other, which is false. */
function hasSemicolons({ routerOptions, useSemicolonDelimiter }) {
  return routerOptions?.useSemicolonDelimiter || useSemicolonDelimiter;
}

/** `http://host?x=/y` is `/` to some versions of the router and `/y` to others. */
function withoutHost(url) {
  const [host, ...segments] = url.replace(ABSOLUTE, '').split('/');
  if (segments.length > 0 && host.includes('?')) {
    const error = failure('ERR_ROLLGATE_URL', 'the URL of a request has a host, but no path');
    throw Object.assign(error, { statusCode: 400 });
  }
  return `/${segments.join('/')}`;
}

module.exports = { createRoutedPath };
