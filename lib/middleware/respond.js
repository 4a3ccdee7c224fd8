// The default handler: answers a refused request with statusCode and message.
'use strict';

function respond(req, res, _next, { message, statusCode }) {
  // First, so that a message function finds it, and may set another.
  res.statusCode = statusCode;
  if (typeof message !== 'function') {
    send(res, message);
    return undefined;
  }
  const body = message(req, res);
  if (typeof body?.then !== 'function') {
    send(res, body);
    return undefined;
  }
  return body.then((settled) => send(res, settled));
}

function send(res, body) {
  // A message function may have answered by itself.
  if (res.writableEnded) return;
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
