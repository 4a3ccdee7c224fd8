// Limits by path, method and plan. Run it: node examples/rules.js, then: curl -i -H 'x-api-key: key-of-bob' http://127.0.0.1:3000/search
'use strict';

const express = require('express');
const { rateLimit } = require('rollgate');

/** A real application looks up its users; here a header identifies them. */
const PLANS = { 'key-of-ada': 'gold', 'key-of-bob': 'free' };

const app = express();

app.use(
  rateLimit({
    authenticate(req) {
      const key = req.get('x-api-key') ?? '';
      if (!Object.hasOwn(PLANS, key)) throw new Error('unknown API key');
      return { id: key, group: PLANS[key] };
    },
    onAuthError(error, _req, res) {
      res.status(401).send(`${error.message}\n`);
    },
    standardHeaders: 'draft-8',
    // The first rule that matches decides; a path without a rule is not limited.
    rules: [
      { path: '/admin', limit: 0, blockFor: 60_000, blockEverywhere: true }, // a trap
      { path: '/login', method: 'POST', limit: 3, windowMs: 60_000, blockFor: [60_000, 600_000] },
      { path: '/search', group: 'gold', limit: 100, windowMs: 60_000 },
      {
        path: '/search',
        countBlocked: false, // refused requests do not count
        limits: [
          { interval: 1000, maxInInterval: 5 },
          { interval: 60_000, maxInInterval: 8 },
        ],
      },
    ],
  }),
);

app.get('/', (_req, res) => res.send('Free of limits, and of names.\n'));
app.get('/search', (req, res) => res.send(`Found. ${req.rateLimit.remaining} more.\n`));
app.post('/login', (_req, res) => res.status(403).send('No.\n'));

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
