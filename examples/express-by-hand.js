// A middleware written by hand with the callback. Run it: node examples/express-by-hand.js
'use strict';

const express = require('express');
const RateLimiter = require('rollgate');

const limiter = RateLimiter({ interval: 60_000, maxInInterval: 100, minDifference: 100 });

const app = express();

app.use((req, res, next) => {
  limiter(req.ip, (err, timeLeft) => {
    if (err) {
      res.status(500).send();
    } else if (timeLeft) {
      res.status(429).send(`You must wait ${timeLeft} ms before you can make requests.`);
    } else {
      next();
    }
  });
});

app.get('/', (_req, res) => {
  res.send('Welcome.\n');
});

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
