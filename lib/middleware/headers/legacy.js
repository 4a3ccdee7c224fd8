// The X-RateLimit-* headers: no standard, but what most clients read. The reset is a time of day.
'use strict';

let dateSecond = -1;
let dateText = '';

function writeLegacyHeaders(res, info, decision, nowMs) {
  res.setHeader('X-RateLimit-Limit', String(info.limit));
  res.setHeader('X-RateLimit-Remaining', String(info.remaining));
  // Sent with the time it is measured against, for clients whose clock is off.
  res.setHeader('Date', httpDate(nowMs));
  res.setHeader('X-RateLimit-Reset', String(Math.ceil((nowMs + decision.resetIn) / 1000)));
}

/** An HTTP date has whole seconds, and many requests fall into one: the text is made once for each. */
function httpDate(nowMs) {
  const second = Math.floor(nowMs / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateText = new Date(nowMs).toUTCString();
  }
  return dateText;
}

module.exports = { writeLegacyHeaders };
