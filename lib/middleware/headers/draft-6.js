// The RateLimit-* headers of draft-ietf-httpapi-ratelimit-headers-06. The reset is a number of seconds.
'use strict';

const { rememberForWindows } = require('./same-windows');
const { policies } = require('./window-policies');

function createDraft6Writer() {
  const policiesOf = rememberForWindows(policies);
  return (res, info, decision) => {
    res.setHeader('RateLimit-Policy', policiesOf(decision.limits));
    res.setHeader('RateLimit-Limit', String(info.limit));
    res.setHeader('RateLimit-Remaining', String(info.remaining));
    res.setHeader('RateLimit-Reset', String(Math.ceil(decision.resetIn / 1000)));
  };
}

module.exports = { createDraft6Writer };
