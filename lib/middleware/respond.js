// The default handler: answers a refused request with statusCode and message.
'use strict';

const { withMessage } = require('./message');

function respond(req, res, _next, settings) {
  return withMessage(req, res, settings, send);
}

function send(res, body) {
  if (typeof res.send === 'function') res.send(body);
  else sendPlainly(res, body);
}

/** Connect and plain servers have no res.send. */
function sendPlainly(res, body) {
  if (typeof body === 'string' || body === undefined || body === null) {
    setContentType(res, 'text/plain; charset=utf-8');
    res.end(body ?? '');
  } else if (Buffer.isBuffer(body)) {
    setContentType(res, 'application/octet-stream');
    res.end(body);
  } else {
    setContentType(res, 'application/json; charset=utf-8');
    res.end(JSON.stringify(body));
  }
}

function setContentType(res, type) {
  if (!res.headersSent && !res.hasHeader('Content-Type')) res.setHeader('Content-Type', type);
}

module.exports = { respond };
