// The middleware over a key-value store: it counts for all who share it, and its failures are next's.
'use strict';

const express = require('express');
const request = require('supertest');
const { rateLimit } = require('../..');
const { createPlainKv } = require('../support/kv-stores');

function appWith(options) {
  const app = express();
  app.use(rateLimit({ namespace: 'n', windowMs: 60_000, limit: 2, ...options }));
  app.get('/', (req, res) => res.status(Number(req.query.status ?? 200)).send('through'));
  app.use((error, _req, res, _next) => res.status(500).send(error.code));
  return app;
}

const statusesOf = async (apps, path = '/') => {
  const statuses = [];
  for (const app of apps) statuses.push((await request(app).get(path)).status);
  return statuses;
};

test('applications with one namespace count together', async () => {
  const kv = createPlainKv();
  const [one, two] = [appWith({ kv }), appWith({ kv })];
  expect(await statusesOf([one, two, one, two])).toEqual([200, 200, 429, 429]);
});

test('skipFailedRequests takes requests back', async () => {
  const app = appWith({ kv: createPlainKv(), skipFailedRequests: true });
  expect(await statusesOf([app, app, app, app], '/?status=404')).toEqual([404, 404, 404, 404]);
  expect(await statusesOf([app, app, app])).toEqual([200, 200, 429]);
});

test('limit may be a function of the request', async () => {
  const app = appWith({ kv: createPlainKv(), limit: (req) => Number(req.query.limit) });
  expect(await statusesOf([app, app, app], '/?limit=2')).toEqual([200, 200, 429]);
  expect(await statusesOf([app, app, app], '/?limit=4')).toEqual([200, 429, 429]);
  expect(await statusesOf([app], '/?limit=0')).toEqual([429]);
});

test('a store that fails is an error for next, or lets pass by onError', async () => {
  const kv = { ...createPlainKv(), get: () => Promise.reject(new Error('broken')) };
  const { status, text } = await request(appWith({ kv, commandTimeout: 100 })).get('/');
  expect({ status, text }).toEqual({ status: 500, text: 'ERR_ROLLGATE_KV' });
  expect(await statusesOf([appWith({ kv, onError: 'allow' })])).toEqual([200]);
  expect(await statusesOf([appWith({ kv, onError: 'block' })])).toEqual([429]);
});
