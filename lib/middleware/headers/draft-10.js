// The RateLimit headers of draft-ietf-httpapi-ratelimit-headers-10, written as RFC 9651 serializes lists.
'use strict';

const { appendHeader } = require('./append');
const { partitionKey } = require('./partition-key');
const { quoted } = require('./policy-names');
const { rememberForWindows } = require('./same-windows');
const { windowResetSeconds } = require('./window-reset');

/** Unlike in draft 8 the partition is told with the state, too: that is where a client needs it. */
function createDraft10Writer() {
  const partsOf = rememberForWindows(constantParts);
  return (res, info, decision, _nowMs, names) => {
    const partition = `;pk=:${partitionKey(info.key)}:`;
    const parts = partsOf(decision.limits, names);
    let states = '';
    let policies = '';
    for (let i = 0; i < parts.length; i++) {
      const window = decision.limits[i];
      const seconds = windowResetSeconds(window, decision);
      const reset = seconds === undefined ? '' : `;t=${seconds}`;
      states += `${parts[i].state}${window.remaining}${reset}${partition}`;
      policies += `${parts[i].policy}${partition}`;
    }
    appendHeader(res, 'RateLimit', states);
    appendHeader(res, 'RateLimit-Policy', policies);
  };
}

/** What stands before the numbers that change, for each window. */
function constantParts(windows, names) {
  return windows.map(({ interval, maxInInterval }, i) => {
    const name = i === 0 ? quoted(names[i]) : `, ${quoted(names[i])}`;
    const seconds = Math.ceil(interval / 1000);
    return { state: `${name};r=`, policy: `${name};q=${maxInInterval};w=${seconds}` };
  });
}

module.exports = { createDraft10Writer };
