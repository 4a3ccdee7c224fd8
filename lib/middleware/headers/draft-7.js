// The RateLimit headers of draft-ietf-httpapi-ratelimit-headers-07: one for the tightest window's state.
'use strict';

const { policies } = require('./window-policies');

function writeDraft7Headers(res, info, decision) {
  const resetSeconds = Math.ceil(decision.resetIn / 1000);
  res.setHeader('RateLimit-Policy', policies(decision.limits));
  res.setHeader(
    'RateLimit',
    `limit=${info.limit}, remaining=${info.remaining}, reset=${resetSeconds}`,
  );
}

module.exports = { writeDraft7Headers };
