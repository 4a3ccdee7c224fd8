// The middleware in Fastify's terms: responses are replies, and the user's functions get (request, reply).
'use strict';

const { adaptFunctions } = require('../middleware/adapt');
const { isPromise } = require('../middleware/maybe-async');
const { RAW_RESPONSE } = require('../middleware/closing');
const { unwrap, wrap } = require('../middleware/warnings');

/**
 * A reply with the members of a ServerResponse that the middleware uses. Headers go through the reply, so that
 * Fastify's hooks see them.
 */
class ReplyResponse {
  constructor(reply) {
    this.reply = reply;
  }

  get statusCode() {
    return this.reply.statusCode;
  }

  set statusCode(code) {
    this.reply.code(code);
  }

  get headersSent() {
    return this.reply.sent || this.reply.raw.headersSent;
  }

  get writableEnded() {
    return this.reply.raw.writableEnded;
  }

  get [RAW_RESPONSE]() {
    return this.reply.raw;
  }

  getHeader(name) {
    return this.reply.getHeader(name);
  }

  setHeader(name, value) {
    this.reply.header(name, value);
  }

  send(body) {
    if (!this.reply.sent) this.reply.send(body);
  }

  end(body) {
    this.send(body);
  }
}

/** The options for a middleware whose responses are ReplyResponses; `authenticate` takes no response. */
function adaptOptions(options) {
  return adaptFunctions(options, {
    ofRequest: withReply,
    handler: asHandler,
    onAuthError: asErrorHandler,
  });
}

function withReply(own) {
  return wrap(own, (request, { reply }, ...more) => own(request, reply, ...more));
}

/** The handler gets the settings with the user's own functions, so that it can call them. */
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
 * As with every handler in Fastify, the return value is the body, unless next() was called. A returned reply is
 * not awaited, because it is a promise of its own end.
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

module.exports = { ReplyResponse, adaptOptions };
