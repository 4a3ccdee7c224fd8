// The property of Fastify's requests that tells the application what was decided.
'use strict';

const { typeError } = require('../errors');

const DEFAULT_NAME = 'rateLimit';

/** Those that this plugin has declared, for a scope and the scopes within it. */
const DECLARED = Symbol('declared');

/** What every request gets when it is made; not all versions of Fastify tell that they are there. */
const OWN_PROPERTIES = ['id', 'params', 'raw', 'query', 'log', 'body'];

/** Said beforehand, so that all requests are objects of one shape. */
function declareProperty(fastify, { requestPropertyName: name = DEFAULT_NAME }) {
  assertPropertyIsFree(fastify, { requestPropertyName: name });
  if (isDeclared(fastify, name)) return;
  fastify.decorateRequest(name, null);
  fastify[DECLARED] = [...(fastify[DECLARED] ?? []), name];
}

/** Also asked for a route's own, which is not declared. */
function assertPropertyIsFree(fastify, { requestPropertyName: name = DEFAULT_NAME }) {
  if (isDeclared(fastify, name)) return;
  if (!fastify.hasRequestDecorator(name) && !OWN_PROPERTIES.includes(name)) return;
  throw typeError(
    'ERR_ROLLGATE_OPTION',
    `option 'requestPropertyName': expected a name that is free, got ${JSON.stringify(name)}, which requests have already`,
  );
}

function isDeclared(fastify, name) {
  return fastify[DECLARED]?.includes(name);
}

module.exports = { assertPropertyIsFree, declareProperty };
