// The response to a blocked request: the default handlers.
'use strict';

const { andThen } = require('./maybe-async');

/** By the application's info: the names of the policies that blocked the request. */
const violated = new WeakMap();

function setViolated(info, names) {
  violated.set(info, names);
}

/** Answers a blocked request with statusCode and message. */
function respond(req, res, _next, settings) {
  return withMessage(req, res, settings, sendMessage);
}

const PROBLEM_TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const PROBLEM_TITLE = 'Request cannot be satisfied as assigned quota has been exceeded';

/**
 * The default handler with problemDetails: RFC 9457, with the type that draft 10 of the RateLimit headers
 * defines. A string as message becomes the detail; the members of an object become members of the problem.
 */
function respondWithProblem(req, res, _next, settings) {
  const names = violated.get(Object(req[settings.requestPropertyName])) ?? [];
  return withMessage(req, res, settings, (_res, message) => sendProblem(res, names, message));
}

/** Sets the status, gets the message and calls `send(res, body)`; a promise if the message is one. */
function withMessage(req, res, { message, statusCode }, send) {
  // First, so that a message function sees it and may set another.
  res.statusCode = statusCode;
  const answer = (body) => {
    // The message function, or the application before it, may have sent the response.
    if (!res.writableEnded) send(res, body);
  };
  return typeof message === 'function' ? andThen(message(req, res), answer) : answer(message);
}

/** Connect and plain servers have no res.send. */
function sendMessage(res, body) {
  if (typeof res.send === 'function') {
    res.send(body);
  } else if (typeof body === 'string' || body === undefined || body === null) {
    endAs('text/plain; charset=utf-8', res, body ?? '');
  } else if (body instanceof Uint8Array) {
    endAs('application/octet-stream', res, body);
  } else {
    endAs('application/json; charset=utf-8', res, JSON.stringify(body));
  }
}

function endAs(type, res, body) {
  if (!res.headersSent && !res.hasHeader('Content-Type')) res.setHeader('Content-Type', type);
  res.end(body);
}

function sendProblem(res, names, message) {
  const problem = { type: PROBLEM_TYPE, title: PROBLEM_TITLE, status: res.statusCode };
  problem['violated-policies'] = names;
  if (typeof message === 'string') problem.detail = message;
  else if (isMembers(message)) Object.assign(problem, message);
  const body = new TextEncoder().encode(JSON.stringify(problem));
  if (!res.headersSent) {
    res.setHeader('Content-Type', 'application/problem+json');
    res.setHeader('Content-Length', body.length);
  }
  res.end(body);
}

function isMembers(message) {
  return typeof message === 'object' && !Array.isArray(message) && !(message instanceof Uint8Array);
}

module.exports = { respond, respondWithProblem, setViolated };
