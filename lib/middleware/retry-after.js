// The Retry-After header of a refusal (RFC 9110, section 10.2.3), in whole seconds.
'use strict';

/** Rounded up: a client that waits this long is never too early. */
function setRetryAfter(res, decision) {
  res.setHeader('Retry-After', String(Math.ceil(decision.timeLeft / 1000)));
}

module.exports = { setRetryAfter };
