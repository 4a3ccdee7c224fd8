// The RateLimit headers of draft-ietf-httpapi-ratelimit-headers-08, spaced as express-rate-limit does.
'use strict';

const { appendHeader } = require('./append');
const { partitionKey } = require('./partition-key');
const { quoted } = require('./policy-names');
const { windowResetSeconds } = require('./window-reset');

function writeDraft8Headers(res, info, decision, _nowMs, names) {
  const pk = partitionKey(info.key);
  let states = '';
  let policies = '';
  for (let i = 0; i < names.length; i++) {
    const window = decision.limits[i];
    const name = i === 0 ? quoted(names[i]) : `, ${quoted(names[i])}`;
    const seconds = windowResetSeconds(window, decision);
    const reset = seconds === undefined ? '' : `; t=${seconds}`;
    states += `${name}; r=${window.remaining}${reset}`;
    const windowSeconds = Math.ceil(window.interval / 1000);
    policies += `${name}; q=${window.maxInInterval}; w=${windowSeconds}; pk=:${pk}:`;
  }
  appendHeader(res, 'RateLimit', states);
  appendHeader(res, 'RateLimit-Policy', policies);
}

module.exports = { writeDraft8Headers };
