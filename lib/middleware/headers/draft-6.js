// The RateLimit-* headers of draft-ietf-httpapi-ratelimit-headers-06. The reset is a number of seconds.
'use strict';

const { policies } = require('./window-policies');

function writeDraft6Headers(res, info, decision) {
  res.setHeader('RateLimit-Policy', policies(decision.limits));
  res.setHeader('RateLimit-Limit', String(info.limit));
  res.setHeader('RateLimit-Remaining', String(info.remaining));
  res.setHeader('RateLimit-Reset', String(Math.ceil(decision.resetIn / 1000)));
}

module.exports = { writeDraft6Headers };
