// The RateLimit headers of draft-ietf-httpapi-ratelimit-headers-07: one for the tightest window's state.
'use strict';

const { rememberForNumbers } = require('./same-numbers');
const { rememberForWindows } = require('./same-windows');
const { policies } = require('./window-policies');

function createDraft7Writer() {
  const policiesOf = rememberForWindows(policies);
  const stateOf = rememberForNumbers(state);
  return (res, info, decision) => {
    res.setHeader('RateLimit-Policy', policiesOf(decision.limits));
    const resetSeconds = Math.ceil(decision.resetIn / 1000);
    res.setHeader('RateLimit', stateOf(info.limit, info.remaining, resetSeconds));
  };
}

function state(limit, remaining, resetSeconds) {
  return `limit=${limit}, remaining=${remaining}, reset=${resetSeconds}`;
}

module.exports = { createDraft7Writer };
