// The user's functions for Fastify: they get (request, reply) where the middleware has (req, res).
'use strict';

const { isPromise } = require('../middleware/is-promise');
const { standsFor } = require('../middleware/stands-for');

/** How each is called by the middleware; what is not listed gets no response. */
const ADAPTERS = {
  identifier: withReply,
  ipv6Subnet: withReply,
  keyGenerator: withReply,
  limit: withReply,
  max: withReply,
  message: withReply,
  requestWasSuccessful: withReply,
  skip: withReply,
  handler: asHandler,
  onAuthError: asErrorHandler,
};

/** The same options, for a middleware whose responses are ReplyResponses. What is no function is left alone. */
function inFastifysTerms(options) {
  const own = Object.entries(options).filter(
    ([name, value]) => Object.hasOwn(ADAPTERS, name) && typeof value === 'function',
  );
  const functions = Object.fromEntries(own);
  const adapted = own.map(([name, value]) => [name, ADAPTERS[name](value, functions)]);
  return { ...options, ...Object.fromEntries(adapted) };
}

function withReply(own) {
  return standsFor(own, (request, { reply }) => own(request, reply));
}

/** What the settings hold is what the user gave, so that a handler can call it. */
function asHandler(own, functions) {
  let shown;
  return (request, { reply }, next, settings) => {
    shown ??= Object.freeze({ ...settings, ...functions });
    return answer(own(request, reply, next, shown), reply);
  };
}

function asErrorHandler(own) {
  return (error, request, { reply }, next) => answer(own(error, request, reply, next), reply);
}

/** As from any handler in Fastify, what is returned is the body. A reply is a promise of its own end. */
function answer(returned, reply) {
  if (returned === reply) return undefined;
  if (isPromise(returned)) return returned.then((body) => answer(body, reply));
  if (returned !== undefined && returned !== null && !reply.sent) reply.send(returned);
  return undefined;
}

module.exports = { inFastifysTerms };
