// The user's functions for Fastify: they get (request, reply) where the middleware has (req, res).
'use strict';

const { isPromise } = require('../middleware/maybe-async');
const { unwrap, wrap } = require('../middleware/warnings');

/** How the middleware calls each; those that are not listed, such as authenticate, get no response. */
const ADAPTERS = {
  identifier: withReply,
  ipv6Subnet: withReply,
  keyGenerator: withReply,
  limit: withReply,
  max: withReply,
  maxInInterval: withReply,
  message: withReply,
  requestWasSuccessful: withReply,
  skip: withReply,
  handler: asHandler,
  onAuthError: asErrorHandler,
};

/** The same options, for a middleware whose responses are ReplyResponses. What is no function is left alone. */
function inFastifysTerms(options) {
  const adapted = adaptFunctions(options, ADAPTERS);
  if (Array.isArray(options.rules)) adapted.rules = adaptRules(options.rules);
  return adapted;
}

/** A function of several rules stays one, as rules of one zone must agree in it. */
function adaptRules(rules) {
  const adapted = new Map();
  const adaptOnce = (own) => {
    if (!adapted.has(own)) adapted.set(own, withReply(own));
    return adapted.get(own);
  };
  const adapters = { limit: adaptOnce, max: adaptOnce, maxInInterval: adaptOnce };
  const isObject = (rule) => typeof rule === 'object' && rule !== null && !Array.isArray(rule);
  return Array.from(rules, (rule) => (isObject(rule) ? adaptFunctions(rule, adapters) : rule));
}

function adaptFunctions(options, adapters) {
  const adapted = { ...options };
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'function' || !Object.hasOwn(adapters, name)) continue;
    adapted[name] = adapters[name](value);
  }
  return adapted;
}

function withReply(own) {
  return wrap(own, (request, { reply }) => own(request, reply));
}

/** What the settings hold is what the user gave, so that a handler can call it. */
function asHandler(own) {
  let shown;
  return wrap(own, (request, { reply }, next, settings) => {
    shown ??= withOriginals(settings);
    return answer((goOn) => own(request, reply, goOn, shown), reply, next);
  });
}

function withOriginals(settings) {
  const entries = Object.entries(settings).map(([name, value]) => [name, unwrap(value)]);
  return Object.freeze(Object.fromEntries(entries));
}

function asErrorHandler(own) {
  return wrap(own, (error, request, { reply }, next) => {
    return answer((goOn) => own(error, request, reply, goOn), reply, next);
  });
}

/**
 * As from any handler in Fastify, what is returned is the body, unless the request was let go on. A reply is
 * a promise of its own end.
 */
function answer(ask, reply, next) {
  let hasGoneOn = false;
  const goOn = (...args) => {
    hasGoneOn = true;
    next(...args);
  };
  const send = (body) => {
    if (body === reply) return undefined;
    if (isPromise(body)) return body.then(send);
    if (body !== undefined && body !== null && !hasGoneOn && !reply.sent) reply.send(body);
    return undefined;
  };
  return send(ask(goOn));
}

module.exports = { inFastifysTerms };
