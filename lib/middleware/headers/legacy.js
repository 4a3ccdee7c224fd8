// The X-RateLimit-* headers: no standard, but what most clients read. The reset is a time of day.
'use strict';

const { rememberForLastNumber } = require('./last-number');

function createLegacyWriter() {
  const limitText = rememberForLastNumber(String);
  const resetText = rememberForLastNumber(String);
  const httpDate = rememberForLastNumber((second) => new Date(second * 1000).toUTCString());
  return (res, info, decision, nowMs) => {
    res.setHeader('X-RateLimit-Limit', limitText(info.limit));
    res.setHeader('X-RateLimit-Remaining', String(info.remaining));
    // Sent with the time it is measured against, for clients whose clock is off.
    res.setHeader('Date', httpDate(Math.floor(nowMs / 1000)));
    res.setHeader('X-RateLimit-Reset', resetText(Math.ceil((nowMs + decision.resetIn) / 1000)));
  };
}

module.exports = { createLegacyWriter };
