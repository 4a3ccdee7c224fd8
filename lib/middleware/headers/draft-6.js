// The RateLimit-* headers of draft-ietf-httpapi-ratelimit-headers-06. The reset is a number of seconds.
'use strict';

const { rememberForLastNumber } = require('./last-number');
const { rememberForWindows } = require('./same-windows');
const { policies } = require('./window-policies');

function createDraft6Writer() {
  const policiesOf = rememberForWindows(policies);
  const limitText = rememberForLastNumber(String);
  const resetText = rememberForLastNumber(String);
  return (res, info, decision) => {
    res.setHeader('RateLimit-Policy', policiesOf(decision.limits));
    res.setHeader('RateLimit-Limit', limitText(info.limit));
    res.setHeader('RateLimit-Remaining', String(info.remaining));
    res.setHeader('RateLimit-Reset', resetText(Math.ceil(decision.resetIn / 1000)));
  };
}

module.exports = { createDraft6Writer };
