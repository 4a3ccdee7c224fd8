// Small Express apps behind a middleware, and a clock moved by hand, for the middleware's tests.
'use strict';

const express = require('express');
const request = require('supertest');

const START_MS = Date.UTC(2024, 0, 2, 3, 4, 5, 678);

/** Everything but Date stays real: the requests are real ones. */
const REAL = [
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
];

/** Stops Date in this test file; `clock` for the limiter reads the same hand. */
function useHandMovedClock() {
  beforeEach(() => jest.useFakeTimers({ doNotFake: REAL, now: START_MS }));
  afterEach(() => jest.useRealTimers());
  return {
    clock: () => Date.now(),
    advance: (ms) => jest.setSystemTime(Date.now() + ms),
  };
}

/** An Express 5 app with the middleware on every route; GET / answers 'passed'. */
function appWith(middleware) {
  const app = express();
  app.use(middleware);
  app.get('/', (_req, res) => res.send('passed'));
  // Express tells an error handler by its four parameters.
  app.use((error, _req, res, _next) => {
    res.status(500).json({ code: error.code, message: error.message });
  });
  return app;
}

const get = (app, path = '/') => request(app).get(path);

async function getTimes(app, times) {
  const answers = [];
  for (let i = 0; i < times; i++) answers.push(await get(app));
  return answers;
}

module.exports = { START_MS, useHandMovedClock, appWith, get, getTimes };
