// Refusals as application/problem+json: RFC 9457, with the names of the policies that were exceeded.
'use strict';

const http = require('node:http');
const request = require('supertest');
const { rateLimit } = require('../..');
const { useHandMovedClock, appWith, get, getTimes } = require('./apps');

const time = useHandMovedClock();
const TYPE = 'https://iana.org/assignments/http-problem-types#quota-exceeded';

function appOf(options) {
  return appWith(
    rateLimit({ problemDetails: true, countBlocked: false, clock: time.clock, ...options }),
  );
}

async function refusal(options, passes) {
  const answers = await getTimes(appOf(options), passes + 1);
  expect(answers.map(({ status }) => status).slice(0, -1)).toEqual(Array(passes).fill(200));
  return answers[passes];
}

test('a refusal is a problem of the type that the draft defines', async () => {
  const { status, headers, body } = await refusal({ windowMs: 60_000, limit: 2 }, 2);
  expect([status, headers['content-type']]).toEqual([429, 'application/problem+json']);
  expect(headers['retry-after']).toBe('60');
  expect(body).toEqual({
    type: TYPE,
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
    status: 429,
    detail: 'Too many requests, please try again later.',
    'violated-policies': ['2-in-1min'],
  });
});

test('of several windows only those are named that are exceeded', async () => {
  const limits = [
    { interval: 1000, maxInInterval: 2 },
    { interval: 60_000, maxInInterval: 3 },
  ];
  const app = appOf({ limits });
  const violated = async () => (await get(app)).body['violated-policies'];
  await getTimes(app, 2);
  expect(await violated()).toEqual(['2-in-1sec']);
  time.advance(1000);
  await get(app);
  expect(await violated()).toEqual(['3-in-1min']);
});

test('the names are those of the headers', async () => {
  const options = { limit: 1, standardHeaders: 'draft-10', identifier: async () => 'a "b"' };
  const { headers, body } = await refusal(options, 1);
  expect(body['violated-policies']).toEqual(['a "b"']);
  expect(headers.ratelimit).toMatch(/^"a \\"b\\"";r=0/);
});

test('without draft headers identifier is asked for refusals only', async () => {
  const identifier = jest.fn(() => 'mine');
  const { body } = await refusal({ limit: 2, identifier }, 2);
  expect(body['violated-policies']).toEqual(['mine']);
  expect(identifier).toHaveBeenCalledTimes(1);
});

test('minDifference is no policy of the headers, so it has no name', async () => {
  const { body } = await refusal({ limit: 5, minDifference: 100 }, 1);
  expect(body['violated-policies']).toEqual([]);
});

test.each([
  ['a text', 'slow down', { detail: 'slow down' }],
  [
    'an object',
    { detail: 'no', instance: '/me', type: 'urn:own' },
    { type: 'urn:own', instance: '/me' },
  ],
  ['a function', (req) => `not ${req.method}`, { detail: 'not GET' }],
  ['an async function', async () => ({ tries: 3 }), { tries: 3 }],
])('message as %s becomes part of it', async (_what, message, expected) => {
  const { body } = await refusal({ limit: 0, message }, 0);
  expect(body).toMatchObject(expected);
  expect(body['violated-policies']).toEqual(['0-in-1min']);
});

test('status and body tell the same status', async () => {
  const { status, body } = await refusal({ limit: 0, statusCode: 503 }, 0);
  expect([status, body.status]).toEqual([503, 503]);
});

test('a message function that answers by itself is not answered over', async () => {
  const message = (_req, res) => void res.status(418).end('teapot');
  const answer = await refusal({ limit: 0, message }, 0);
  expect([answer.status, answer.text]).toEqual([418, 'teapot']);
});

test('a HEAD request gets the headers alone', async () => {
  const answer = await request(appOf({ limit: 0 })).head('/');
  expect([answer.status, answer.headers['content-type']]).toEqual([
    429,
    'application/problem+json',
  ]);
  expect(answer.text).toBeUndefined();
});

test('a server without Express answers alike', async () => {
  const middleware = rateLimit({ limit: 0, problemDetails: true, clock: time.clock });
  const server = http.createServer((req, res) => middleware(req, res, () => res.end()));
  const { status, headers, body } = await request(server).get('/');
  expect([status, headers['content-type'], body.type]).toEqual([
    429,
    'application/problem+json',
    TYPE,
  ]);
});
