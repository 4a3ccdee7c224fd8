// The code for what is set on the page.
'use strict';

const { hasLeases, leaseOf } = require('./leases');
const { PRESETS } = require('./presets');
const { limiterOptions } = require('./simulation');

/** As a person writes it: 10_000 and 'name'. */
function literal(value) {
  if (typeof value === 'string') return `'${value}'`;
  return String(value).replace(/\B(?=(\d{3})+$)/g, '_');
}

const COMMENTS = {
  shared: ' // one count for all processes of this host',
  redis: ' // one count for all hosts',
  lease: ' // permits are taken ahead, for so many ms',
};

const lines = (options) =>
  Object.entries(options)
    .map(([name, value]) => `  ${name}: ${literal(value)},${COMMENTS[name] ?? ''}\n`)
    .join('');

/** Where processes with one limit count. */
function sharing(settings, algorithm) {
  const { limiters } = PRESETS[settings.preset];
  if (limiters === 'shared') return { shared: 'my-app' };
  if (limiters !== 'leases') return {};
  const redis = { redis: 'redis://127.0.0.1:6379', namespace: 'my-app' };
  return hasLeases(settings, algorithm) ? { ...redis, lease: leaseOf(settings) } : redis;
}

const ONE_ATTEMPT = "const timeLeft = limiter('ada');\n";
const ONE_ON_REDIS = "limiter('ada').then((timeLeft) => console.log(timeLeft));\n";

function limiterCode(settings, algorithm) {
  const store = sharing(settings, algorithm);
  const options = { ...limiterOptions(settings, algorithm), ...store };
  const attempt = store.redis === undefined ? ONE_ATTEMPT : ONE_ON_REDIS;
  return `const RateLimiter = require('rollgate');

const limiter = RateLimiter({
${lines(options)}});

// 0: allowed, else the milliseconds to wait
${attempt}`;
}

function expressCode(settings, algorithm) {
  const { interval, maxInInterval, countBlocked, ...rest } = limiterOptions(settings, algorithm);
  const options = {
    windowMs: interval,
    limit: maxInInterval,
    ...rest,
    ...sharing(settings, algorithm),
  };
  if (countBlocked) options.countBlocked = true; // by default not, in the middleware
  return `const express = require('express');
const { rateLimit } = require('rollgate');

const app = express();
app.use(rateLimit({
${lines(options)}}));
app.get('/', (req, res) => res.send('hello\\n'));
app.listen(3000, '127.0.0.1');
`;
}

const slotsCode = ({ max }) => `const { ConcurrencyLimiter } = require('rollgate');

const actions = ConcurrencyLimiter({ max: ${max} });

const slot = actions.acquire('ada');
if (slot.allowed) {
  try {
    // the action
  } finally {
    slot.release();
  }
}
`;

const slotsExpressCode = ({ max }) => `const express = require('express');
const { concurrencyLimit } = require('rollgate');

const app = express();
app.use(concurrencyLimit({ max: ${max} }));
app.get('/', (req, res) => res.send('hello\\n'));
app.listen(3000, '127.0.0.1');
`;

module.exports = { expressCode, limiterCode, slotsCode, slotsExpressCode };
