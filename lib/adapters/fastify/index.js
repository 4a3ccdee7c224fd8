// The Fastify plugin: the middleware as a hook of the scope in which the plugin is registered.
'use strict';

const { inAdapter, optionError, optionTypeError } = require('../../base/errors');
const { adaptOptions, ReplyResponse } = require('./reply');
const { createRoutedPath, mergeConcurrencyOptions, mergeRouteOptions } = require('./route');
const concurrencyLimit = require('../concurrency');
const rateLimit = require('../middleware');
const { PATH_OF } = require('../middleware/rules/paths');
const { readObject } = require('../../options/values');

/**
 * What the plugin limits. `name` is that of the option of a route, and of the property of requests; `nearest` the
 * property of a scope for the nearest plugin, perhaps of another copy of this package, which is the one for routes with
 * their own options.
 */
const RATE = {
  name: 'rateLimit',
  nearest: Symbol.for('rollgate.nearest'),
  create: (options, routedPath) => rateLimit({ ...options, [PATH_OF]: routedPath }),
  merge: mergeRouteOptions,
};
const CONCURRENCY = {
  name: 'concurrency',
  nearest: Symbol.for('rollgate.nearestConcurrency'),
  create: (options) => concurrencyLimit(options),
  merge: mergeConcurrencyOptions,
};

/** Limits every route of a scope and its inner scopes, and requests without a route: see fastify.d.ts. */
async function rollgate(fastify, { hook, concurrency, ...options }) {
  const nameOfHook = inPlugin(() => readHook(hook));
  // The options of concurrency alone limit no rate.
  const isRateLimited = concurrency === undefined || Object.keys(options).length > 0;
  limitBy(RATE, fastify, nameOfHook, isRateLimited ? options : undefined);
  if (concurrency !== undefined) inPlugin(() => readObject(CONCURRENCY.name, concurrency));
  limitBy(CONCURRENCY, fastify, nameOfHook, concurrency);
}

/** Without `options`, only routes with their own ones are limited. */
function limitBy(kind, fastify, nameOfHook, options) {
  const { name, nearest } = kind;
  const routedPath = createRoutedPath(fastify);
  const create = (given) => createHook(kind.create(adaptOptions(given), routedPath));
  const ofScope = options && inPlugin(() => create(options));
  if (options !== undefined) inPlugin(() => declareProperty(fastify, name, options));
  const ofRoutes = createRouteHooks(kind, options, (merged) => {
    assertPropertyIsFree(fastify, name, merged);
    return create(merged);
  });

  function limit(request, reply, next) {
    const { config, method, url } = request.routeOptions;
    const own = config?.[name];
    let limitRequest = own === false ? undefined : ofScope;
    try {
      if (hasOwnOptions(name, own)) {
        if (this[nearest] !== ofRoutes) return next();
        limitRequest = ofRoutes.hookOf(own, method, url);
      }
    } catch (error) {
      return next(error);
    }
    if (limitRequest === undefined) return next();
    // Returns no promise: Fastify would continue once for it and once for next().
    limitRequest(request, reply, next);
  }

  // Inner scopes inherit it, unless they have options of their own.
  if (options !== undefined || fastify[nearest] === undefined) fastify[nearest] = ofRoutes;

  // Fastify calls hooks on the scope of the route.
  fastify.addHook('onRoute', function prepare(route) {
    const { config, method, url } = route;
    if (!hasOwnOptions(name, config?.[name]) || this[nearest] !== ofRoutes) return;
    ofRoutes.declare(config[name], { method, url });
    if (options === undefined) declareProperty(fastify, name);
  });
  fastify.addHook(nameOfHook, limit);
}

/** Those that may refuse a request and know its route. */
const HOOKS = ['onRequest', 'preValidation', 'preHandler'];

function readHook(hook = HOOKS[0]) {
  if (HOOKS.includes(hook)) return hook;
  throw optionTypeError('hook', `one of ${HOOKS.join(', ')}`, hook);
}

function inPlugin(read) {
  return inAdapter('Fastify plugin', read);
}

function createHook(middleware) {
  return (request, reply, next) => {
    middleware(request, new ReplyResponse(reply), next);
  };
}

/**
 * The hooks of routes with their own limits. GET and the HEAD that Fastify derives from it share one. Routes that
 * were declared before the plugin get theirs with the first request.
 */
function createRouteHooks(kind, scopeOptions, createOwnHook) {
  const hooks = new WeakMap();

  /** `named`: the methods in the name of the counts. */
  function hookOf(own, method, url, named = method === 'HEAD' ? 'GET' : method) {
    // By options first: several routes may have the same object.
    if (!hooks.has(own)) hooks.set(own, new Map());
    const routes = hooks.get(own);
    const known = routes.get(`${method} ${url}`);
    if (known !== undefined) return known.hook;
    const methods = [named].flat();
    const hasSameMethods =
      method === 'HEAD'
        ? (route) => route.methods.includes('GET')
        : (route) => String(route.methods) === String(methods);
    const same = [...routes.values()].find((route) => route.url === url && hasSameMethods(route));
    const hook =
      same?.hook ??
      inPlugin(() => createOwnHook(kind.merge(scopeOptions ?? {}, own, { methods, url })));
    routes.set(`${method} ${url}`, { methods, url, hook });
    return hook;
  }

  return {
    hookOf,

    /** Fastify declares the route for GET before the derived one for HEAD. */
    declare: (own, { method, url }) => hookOf(own, method, url, method),
  };
}

/** @param {unknown} own the option of a route; undefined and true mean the scope's */
function hasOwnOptions(name, own) {
  if (own === undefined || typeof own === 'boolean') return false;
  if (typeof own === 'object' && own !== null && !Array.isArray(own)) return true;
  return inPlugin(() => {
    throw optionTypeError(`config.${name}`, 'options, true or false', own);
  });
}

/** The properties that this plugin, of any copy of this package, has declared in a scope and its inner scopes. */
const DECLARED = Symbol.for('rollgate.declared');

/** Properties of every request; not all versions of Fastify report them as decorators. */
const OWN_PROPERTIES = ['id', 'params', 'raw', 'query', 'log', 'body'];

/** Declared in advance, so that all requests have the same shape. */
function declareProperty(fastify, byDefault, { requestPropertyName: name = byDefault } = {}) {
  assertPropertyIsFree(fastify, name);
  if (isDeclared(fastify, name)) return;
  fastify.decorateRequest(name, null);
  fastify[DECLARED] = [...(fastify[DECLARED] ?? []), name];
}

/** Also called for a route's own property, which is not declared. */
function assertPropertyIsFree(fastify, byDefault, { requestPropertyName: name = byDefault } = {}) {
  if (isDeclared(fastify, name)) return;
  if (!fastify.hasRequestDecorator(name) && !OWN_PROPERTIES.includes(name)) return;
  const came = `${JSON.stringify(name)}, which requests have already`;
  throw optionError('requestPropertyName', `expected a name that is free, got ${came}`);
}

function isDeclared(fastify, name) {
  return fastify[DECLARED]?.includes(name);
}

// Without this, Fastify would give the plugin a scope of its own.
rollgate[Symbol.for('skip-override')] = true;
rollgate[Symbol.for('fastify.display-name')] = 'rollgate';
rollgate[Symbol.for('plugin-meta')] = { name: 'rollgate', fastify: '5.x' };

module.exports = rollgate;
module.exports.rollgate = rollgate;
