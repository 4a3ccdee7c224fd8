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
  return ({ raw: { method, url } }) => {
    const path = ABSOLUTE.test(url) ? withoutHost(url) : url;
    // The router passes over a first character that is no slash: `*api` leads to /api.
    if (!path.startsWith('/') && !(path === '*' && method === 'OPTIONS')) {
      throw badTarget('the URL of a request begins with neither a slash nor a host');
    }
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
    throw badTarget('the URL of a request has a host, but no path');
  }
  return `/${segments.join('/')}`;
}

function badTarget(message) {
  return Object.assign(failure('ERR_ROLLGATE_URL', message), { statusCode: 400 });
}

module.exports = { createRoutedPath };
