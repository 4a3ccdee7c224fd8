// The shortest use: at most 3 actions of a user in any second. Run it: node examples/in-memory.js
'use strict';

const RateLimiter = require('rollgate');

const limiter = RateLimiter({ interval: 1000, maxInInterval: 3 });

function attemptAction(userId) {
  const timeLeft = limiter(userId);
  if (timeLeft > 0) return `refused, try again in ${timeLeft} ms`;
  return 'done';
}

for (let i = 1; i <= 4; i++) console.log(`ada, action ${i}: ${attemptAction('ada')}`);
console.log(`bob, action 1: ${attemptAction('bob')}`);
