// Checks made while a middleware is made: where that happens, and what its keyGenerator looks like.
'use strict';

const { originalOf } = require('./stands-for');

/** How the router of Express 4 and that of Express 5 appear in a stack. */
const HANDLER_FRAME = /\bLayer\.handle(?:Request\b| \[as handle_request\])/;

const IP_OF_REQUEST = /\breq(?:uest)?\.ip\b/;

function checkSetUp({ validate, limiter, keyGenerator }, notices) {
  // A middleware over a limiter that exists counts there, wherever it was made itself.
  if (validate.creationStack && limiter === undefined && isInHandler()) {
    notices.warn(
      'ROLLGATE_CREATED_IN_HANDLER',
      'a middleware was made while a request was handled: it begins to count anew each time.',
    );
  }
  if (validate.keyGeneratorIpFallback && usesBareIp(keyGenerator)) {
    notices.warn(
      'ROLLGATE_BARE_IP_KEY',
      'keyGenerator seems to use req.ip without ipKeyGenerator: clients with IPv6 can change theirs at will.',
    );
  }
}

function isInHandler() {
  return HANDLER_FRAME.test(new Error().stack ?? '');
}

function usesBareIp(keyGenerator) {
  if (keyGenerator === undefined) return false;
  const source = Function.prototype.toString.call(originalOf(keyGenerator));
  return IP_OF_REQUEST.test(source) && !source.includes('ipKeyGenerator');
}

module.exports = { checkSetUp };
