// The RateLimit-Policy header of drafts 6 and 7: '10;w=1, 500;w=3600'.
'use strict';

/** One policy for each window. */
function policies(windows) {
  let text = policy(windows[0]);
  for (let i = 1; i < windows.length; i++) text += `, ${policy(windows[i])}`;
  return text;
}

function policy({ interval, maxInInterval }) {
  return `${maxInInterval};w=${Math.ceil(interval / 1000)}`;
}

module.exports = { policies };
