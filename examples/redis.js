// One limit for all processes of an Express application. It needs a Redis server at REDIS_URL. Run two:
// PORT=3000 node examples/redis.js & PORT=3001 node examples/redis.js, then send requests to both.
'use strict';

const express = require('express');
const { rateLimit } = require('rollgate');

const app = express();

app.use(
  rateLimit({
    redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
    namespace: 'example', // limiters with the same namespace share counts
    onError: 'memory', // without Redis, each process limits by itself
    windowMs: 60_000,
    limit: 10,
    standardHeaders: 'draft-8',
  }),
);

app.get('/', (req, res) => {
  res.send(`Welcome. ${req.rateLimit.remaining} more in this minute, wherever you ask.\n`);
});

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
