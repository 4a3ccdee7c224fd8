// Limits an Express application, 4 or 5. Run it: node examples/frameworks/express.js, then: curl -i http://127.0.0.1:3000/
'use strict';

const express = require('express');
const { rateLimit } = require('rollgate');

const app = express();

app.use(
  rateLimit({
    windowMs: 60_000,
    limit: 10,
    standardHeaders: true, // RateLimit-* in addition to X-RateLimit-*
    message: { error: 'Too many requests, please try again later.' },
  }),
);

app.get('/', (req, res) => {
  res.send(`Welcome. ${req.rateLimit.remaining} more in this minute.\n`);
});

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
