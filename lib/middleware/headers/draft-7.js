// The RateLimit headers of draft-ietf-httpapi-ratelimit-headers-07: one for the tightest window's state.
'use strict';

const { rememberForWindows } = require('./same-windows');
const { policies } = require('./window-policies');

function createDraft7Writer() {
  const policiesOf = rememberForWindows(policies);
  return (res, info, decision) => {
    const resetSeconds = Math.ceil(decision.resetIn / 1000);
    res.setHeader('RateLimit-Policy', policiesOf(decision.limits));
    res.setHeader(
      'RateLimit',
      `limit=${info.limit}, remaining=${info.remaining}, reset=${resetSeconds}`,
    );
  };
}

module.exports = { createDraft7Writer };
