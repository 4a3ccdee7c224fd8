// The default keyGenerator: one key per client address.
'use strict';

const { ipKeyGenerator } = require('./ip-key');

let warned = false;

/**
 * Express answers `req.ip` (which honours 'trust proxy'); Connect, Polka and plain servers have the
 * socket's address only.
 *
 * Neither is there when the client has already gone, and on a Unix socket. Such requests share the bucket
 * of callers without an id, as they do in express-rate-limit: they stay limited, and a lost connection
 * makes no error. A Unix socket would put every client there, so it is said once.
 */
function clientKey(req) {
  const ip = req.ip || req.socket?.remoteAddress;
  if (ip) return ipKeyGenerator(ip);
  if (!warned && req.socket && !req.socket.destroyed) warnOfSharedKey();
  return undefined;
}

function warnOfSharedKey() {
  warned = true;
  process.emitWarning(
    "rateLimit: a request has no client address, so that all such requests share one limit. Set Express's " +
      "'trust proxy', or give a keyGenerator.",
    { type: 'RollgateWarning', code: 'ROLLGATE_NO_CLIENT_IP' },
  );
}

module.exports = { clientKey };
