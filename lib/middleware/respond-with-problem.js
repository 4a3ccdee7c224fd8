// The default handler with problemDetails: RFC 9457, with the type that the RateLimit draft 10 defines.
'use strict';

const { withMessage } = require('./message');
const { RequestInfo } = require('./request-info');

const TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';
const TITLE = 'Request cannot be satisfied as assigned quota has been exceeded';

/** A message that is a text is the detail; of an object each member becomes one of the problem. */
function respondWithProblem(req, res, _next, settings) {
  const names = RequestInfo.violated(req[settings.requestPropertyName]);
  return withMessage(req, res, settings, (_res, message) => send(res, names, message));
}

function send(res, names, message) {
  const problem = { type: TYPE, title: TITLE, status: res.statusCode };
  problem['violated-policies'] = names;
  if (typeof message === 'string') problem.detail = message;
  else if (isMembers(message)) Object.assign(problem, message);
  const body = Buffer.from(JSON.stringify(problem));
  if (!res.headersSent) {
    res.setHeader('Content-Type', 'application/problem+json');
    res.setHeader('Content-Length', body.length);
  }
  res.end(body);
}

function isMembers(message) {
  return typeof message === 'object' && !Array.isArray(message) && !Buffer.isBuffer(message);
}

module.exports = { respondWithProblem };
