// A middleware written by hand with the callback, as users of rolling-rate-limiter have it in their code.
'use strict';

const express = require('express');
const request = require('supertest');
const RateLimiter = require('../..');
const { useHandMovedClock } = require('./apps');

const time = useHandMovedClock();

function appOf(limiter) {
  const app = express();
  app.use((req, res, next) => {
    limiter(req.ip, (err, timeLeft) => {
      if (err) {
        return res.status(500).send();
      } else if (timeLeft) {
        return res.status(429).send(`You must wait ${timeLeft} ms before you can make requests.`);
      } else {
        return next();
      }
    });
  });
  app.get('/', (_req, res) => res.send('passed'));
  return app;
}

test('lets pass, refuses with the time to wait, and lets pass again', async () => {
  const app = appOf(
    RateLimiter({ interval: 60_000, maxInInterval: 2, minDifference: 100, clock: time.clock }),
  );
  const get = async () => {
    const { status, text } = await request(app).get('/');
    return [status, text];
  };
  expect(await get()).toEqual([200, 'passed']);
  time.advance(40);
  expect(await get()).toEqual([429, 'You must wait 59960 ms before you can make requests.']);
  time.advance(60_000);
  expect(await get()).toEqual([200, 'passed']);
});

test('a limiter that fails is a 500', async () => {
  const limiter = RateLimiter({ interval: 60_000, maxInInterval: 2 });
  const app = appOf(limiter);
  await limiter.close();
  expect((await request(app).get('/')).status).toBe(500);
});
