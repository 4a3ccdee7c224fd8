// The callback form, the same for every store. Run it: node examples/callback.js
'use strict';

const RateLimiter = require('rollgate');

const limiter = RateLimiter({ interval: 60_000, maxInInterval: 10, minDifference: 100 });

function attemptAction(userId, done) {
  limiter(userId, (err, timeLeft, actionsLeft) => {
    if (err) {
      // No decision could be made, for example because a store did not answer.
      done(`failed: ${err.message}`);
    } else if (timeLeft > 0) {
      done(`refused, try again in ${timeLeft} ms`);
    } else {
      done(`done, ${actionsLeft} left`);
    }
  });
}

attemptAction('ada', (first) => {
  console.log(`first action: ${first}`);
  // At once: less than minDifference after the first.
  attemptAction('ada', (second) => console.log(`second action: ${second}`));
});
