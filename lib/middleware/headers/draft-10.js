// The RateLimit headers of draft-ietf-httpapi-ratelimit-headers-10, written as RFC 9651 serializes lists.
'use strict';

const { appendHeader } = require('./append');
const { partitionKey } = require('./partition-key');
const { quoted } = require('./policy-names');
const { windowResetSeconds } = require('./window-reset');

/** Unlike in draft 8 the partition is told with the state, too: that is where a client needs it. */
function writeDraft10Headers(res, info, decision, _nowMs, names) {
  const partition = `;pk=:${partitionKey(info.key)}:`;
  let states = '';
  let policies = '';
  for (let i = 0; i < names.length; i++) {
    const window = decision.limits[i];
    const name = i === 0 ? quoted(names[i]) : `, ${quoted(names[i])}`;
    const seconds = windowResetSeconds(window, decision);
    const reset = seconds === undefined ? '' : `;t=${seconds}`;
    states += `${name};r=${window.remaining}${reset}${partition}`;
    const windowSeconds = Math.ceil(window.interval / 1000);
    policies += `${name};q=${window.maxInInterval};w=${windowSeconds}${partition}`;
  }
  appendHeader(res, 'RateLimit', states);
  appendHeader(res, 'RateLimit-Policy', policies);
}

module.exports = { writeDraft10Headers };
