// The RateLimit-* headers of draft-ietf-httpapi-ratelimit-headers-06. The reset is a number of seconds.
'use strict';

function writeDraft6Headers(res, info, decision) {
  res.setHeader('RateLimit-Policy', policies(decision.limits));
  res.setHeader('RateLimit-Limit', String(info.limit));
  res.setHeader('RateLimit-Remaining', String(info.remaining));
  res.setHeader('RateLimit-Reset', String(Math.ceil(decision.resetIn / 1000)));
}

/** One policy for each window: '10;w=1, 500;w=3600'. */
function policies(windows) {
  let text = policy(windows[0]);
  for (let i = 1; i < windows.length; i++) text += `, ${policy(windows[i])}`;
  return text;
}

function policy({ interval, maxInInterval }) {
  return `${maxInInterval};w=${Math.ceil(interval / 1000)}`;
}

module.exports = { writeDraft6Headers };
