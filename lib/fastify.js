// The Fastify plugin: the middleware as a hook of the scope that the plugin is registered in.
'use strict';

const rateLimit = require('./middleware');
const { optionTypeError } = require('./errors');
const { inFastifysTerms } = require('./fastify/functions');
const { ReplyResponse } = require('./fastify/reply-response');
const { createRoutedPath } = require('./fastify/routed-path');
const { assertPropertyIsFree, declareProperty } = require('./fastify/request-property');
const { mergeRouteOptions } = require('./fastify/route-options');
const { PATH_OF } = require('./middleware/rules/paths');

/** Under this a scope has the plugin nearest to it, which is the one for routes with limits of their own. */
const NEAREST = Symbol('nearest');

/**
 * `fastify.register(rollgate, { windowMs: 60_000, limit: 100 })` limits every route of that scope and of
 * the scopes in it, requests without a route included. A route has `config.rateLimit`: false for no limit,
 * or options in place of the scope's. Wrong options are errors of `ready()`.
 *
 * @param {object} fastify
 * @param {object} options those of rateLimit(); their functions get (request, reply)
 */
async function rollgate(fastify, options) {
  const routedPath = createRoutedPath(fastify);
  const ofScope = createHook(options, routedPath);
  declareProperty(fastify, options);
  const ofRoutes = createRouteHooks(options, (merged) => {
    assertPropertyIsFree(fastify, merged);
    return createHook(merged, routedPath);
  });

  // Scopes within this one inherit it, unless they have one of their own.
  fastify[NEAREST] = ofRoutes;

  // Fastify calls hooks on the scope of the route.
  fastify.addHook('onRoute', function makeOwnLimits({ config, method, url }) {
    if (hasOwnLimits(config?.rateLimit) && this[NEAREST] === ofRoutes) {
      ofRoutes.declare(config.rateLimit, { method, url });
    }
  });
  fastify.addHook('onRequest', function limit(request, reply, next) {
    const { config, method, url } = request.routeOptions;
    const own = config?.rateLimit;
    if (own === false) return next();
    let hook = ofScope;
    try {
      if (hasOwnLimits(own)) {
        if (this[NEAREST] !== ofRoutes) return next();
        hook = ofRoutes.hookOf(own, method, url);
      }
    } catch (error) {
      return next(error);
    }
    // No promise is handed back: Fastify would go on once for it and once for next().
    hook(request, reply, next);
  });
}

function createHook(options, routedPath) {
  const middleware = rateLimit({ ...inFastifysTerms(options), [PATH_OF]: routedPath });
  return (request, reply, next) => {
    middleware(request, new ReplyResponse(reply), next);
  };
}

/**
 * The hooks of routes with limits of their own: one for each route, for GET and the HEAD that Fastify makes
 * of it together. Routes that were there before the plugin get theirs with the first request.
 */
function createRouteHooks(scopeOptions, createOwnHook) {
  const hooks = new WeakMap();

  /** By methods and path. Of other routes that were given the same options, too. */
  function routesOf(own) {
    if (!hooks.has(own)) hooks.set(own, new Map());
    return hooks.get(own);
  }

  /** `named`: the methods that its counts are named by. */
  function add(own, method, url, named) {
    const routes = routesOf(own);
    const methods = [named].flat();
    const isSame =
      method === 'HEAD'
        ? (route) => route.url === url && route.methods.includes('GET')
        : (route) => route.url === url && String(route.methods) === String(methods);
    const same = [...routes.values()].find(isSame);
    const hook =
      same?.hook ?? createOwnHook(mergeRouteOptions(scopeOptions, own, { methods, url }));
    routes.set(`${method} ${url}`, { methods, url, hook });
    return hook;
  }

  return {
    /** Fastify declares a route for GET before the one for HEAD that it makes of it. */
    declare(own, { method, url }) {
      add(own, method, url, method);
    },

    hookOf(own, method, url) {
      const route = routesOf(own).get(`${method} ${url}`);
      if (route !== undefined) return route.hook;
      return add(own, method, url, method === 'HEAD' ? 'GET' : method);
    },
  };
}

/** @param {unknown} own what a route says; nothing and true are what the scope says */
function hasOwnLimits(own) {
  if (own === undefined || typeof own === 'boolean') return false;
  if (typeof own === 'object' && own !== null && !Array.isArray(own)) return true;
  throw optionTypeError('config.rateLimit', 'options, true or false', own);
}

// Fastify gives a plugin a scope of its own unless it is told not to.
rollgate[Symbol.for('skip-override')] = true;
rollgate[Symbol.for('fastify.display-name')] = 'rollgate';
rollgate[Symbol.for('plugin-meta')] = { name: 'rollgate', fastify: '5.x' };

module.exports = rollgate;
module.exports.rollgate = rollgate;
