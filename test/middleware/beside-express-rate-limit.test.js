// The same requests through rollgate and through express-rate-limit, wherever a rolling window answers alike.
'use strict';

const express = require('express');
const expressRateLimit = require('express-rate-limit');
const { rateLimit } = require('../..');
const { useHandMovedClock, appWith, get } = require('./apps');

const time = useHandMovedClock();
const WINDOW_MS = 90_500;

/** Requests as [ms waited before it, how many at once]; what each was answered. */
async function play(middleware, script) {
  const app = appWith(middleware);
  const answers = [];
  for (const [waitMs, times] of script) {
    time.advance(waitMs);
    for (let i = 0; i < times; i++) {
      const { status, text, headers } = await get(app);
      const { connection, ...compared } = headers;
      // Where the legacy set is not sent, Date is Node's own, and real time.
      if (headers['x-ratelimit-limit'] === undefined) delete compared.date;
      answers.push({ status, text, headers: compared });
    }
  }
  return answers;
}

/** The script once through each, with the hand put back in between. */
async function playBoth(options, own, script) {
  const startMs = Date.now();
  const theirs = await play(expressRateLimit({ ...options, validate: false }), script);
  jest.setSystemTime(startMs);
  const ours = await play(rateLimit({ ...options, ...own, clock: time.clock }), script);
  return { ours, theirs };
}

const HEADERS = [
  { legacyHeaders: true, standardHeaders: false },
  { legacyHeaders: false, standardHeaders: true },
  { legacyHeaders: false, standardHeaders: 'draft-6' },
  { legacyHeaders: true, standardHeaders: 'draft-6' },
  { legacyHeaders: false, standardHeaders: 'draft-7' },
  { legacyHeaders: true, standardHeaders: 'draft-7' },
  { legacyHeaders: false, standardHeaders: 'draft-8' },
  { legacyHeaders: true, standardHeaders: 'draft-8' },
  { legacyHeaders: true, standardHeaders: 'draft-8', identifier: 'api' },
  { legacyHeaders: false, standardHeaders: 'draft-7', identifier: 'unused' },
  { legacyHeaders: false, standardHeaders: false },
];

describe.each(HEADERS)('with %j', (headers) => {
  test('a burst beyond the limit and a burst one window later are answered alike', async () => {
    const { ours, theirs } = await playBoth({ windowMs: WINDOW_MS, limit: 3, ...headers }, {}, [
      [0, 5],
      [WINDOW_MS, 4],
    ]);
    expect(ours).toEqual(theirs);
    expect(ours.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429, 200, 200, 200, 429]);
  });

  test('requests spread over one window are answered alike when refusals do not count', async () => {
    const { ours, theirs } = await playBoth(
      { windowMs: WINDOW_MS, limit: 3, ...headers },
      { countBlocked: false },
      [
        [0, 1],
        [1, 1],
        [999, 1],
        [30_000, 2],
        [59_499, 1],
      ],
    );
    expect(ours).toEqual(theirs);
    expect(ours.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429, 429]);
  });

  test('limit 0 refuses alike', async () => {
    const { ours, theirs } = await playBoth({ windowMs: WINDOW_MS, limit: 0, ...headers }, {}, [
      [0, 2],
    ]);
    expect(ours).toEqual(theirs);
    expect(ours.map(({ status }) => status)).toEqual([429, 429]);
  });
});

test.each([
  ['the defaults', {}],
  ['max in place of limit', { max: 2 }],
  ['a limit function', { limit: (req) => (req.get('accept') ? 5 : 1) }],
  ['an async limit function', { max: async () => 2, standardHeaders: 'draft-8' }],
  ['a limit function that gives 0', { limit: async () => 0, windowMs: WINDOW_MS }],
  ['limit beside max', { limit: 1, max: 3 }],
  ['options that are undefined', { limit: undefined, message: undefined, skip: undefined }],
  ['another status code', { limit: 1, statusCode: 503 }],
  ['a message that is a string', { limit: 1, message: 'slow down' }],
  ['a message that is an object', { limit: 1, message: { error: 'slow down', tries: [1, 2] } }],
  ['a message function', { limit: 1, message: (req) => `slow down, ${req.method}` }],
  ['an async message function', { limit: 1, message: async () => ({ error: 'slow down' }) }],
  [
    'a message function that reads the status',
    { limit: 1, message: (_q, res) => `s${res.statusCode}` },
  ],
  [
    'a message function that sets the status',
    { limit: 1, message: (_req, res) => void res.status(503) ?? 'later' },
  ],
  [
    'a message function that answers by itself',
    { limit: 1, message: (_req, res) => void res.json({ own: res.statusCode }) },
  ],
  ['a key of its own', { limit: 1, keyGenerator: (req) => req.get('user-agent') ?? 'none' }],
  ['an async key', { limit: 1, keyGenerator: async () => 'all' }],
  ['skip', { limit: 1, skip: () => true }],
  ['async skip', { limit: 1, skip: async () => true }],
  [
    'a handler',
    { limit: 1, handler: (_req, res, _next, o) => res.status(o.statusCode).send('no') },
  ],
  ['a handler that lets pass', { limit: 1, handler: (_req, _res, next) => next() }],
])('%s: answered alike', async (_what, options) => {
  const { ours, theirs } = await playBoth(options, {}, [[0, 7]]);
  expect(ours).toEqual(theirs);
});

test('req.rateLimit has the same shape and, while requests pass, the same values', async () => {
  const seen = async (limiter) => {
    const infos = [];
    const app = appWith((req, res, next) =>
      limiter(req, res, (error) => {
        infos.push({ ...req.rateLimit });
        next(error);
      }),
    );
    for (let i = 0; i < 3; i++) await get(app);
    return infos;
  };
  const options = { windowMs: WINDOW_MS, limit: 3 };
  const theirs = await seen(expressRateLimit({ ...options, validate: false }));
  const ours = await seen(rateLimit({ ...options, clock: time.clock }));
  expect(ours).toEqual(theirs);
  expect(ours[2]).toEqual({
    limit: 3,
    used: 3,
    remaining: 0,
    resetTime: new Date(Date.now() + WINDOW_MS),
    key: '127.0.0.1',
  });
});

test('getKey and resetKey answer alike', async () => {
  const story = async (limiter) => {
    const app = appWith(limiter);
    const told = [await limiter.getKey('127.0.0.1')];
    await get(app);
    told.push({ ...(await limiter.getKey('127.0.0.1')) });
    await get(app);
    told.push({ ...(await limiter.getKey('127.0.0.1')) });
    told.push(await limiter.resetKey('127.0.0.1'));
    told.push(await limiter.getKey('127.0.0.1'));
    told.push((await get(app)).headers['x-ratelimit-remaining']);
    return told;
  };
  const options = { windowMs: WINDOW_MS, limit: 2 };
  const theirs = await story(expressRateLimit({ ...options, validate: false }));
  const ours = await story(rateLimit({ ...options, clock: time.clock }));
  expect(ours).toEqual(theirs);
  expect(ours[0]).toBeUndefined();
  expect(ours[2].totalHits).toBe(2);
});

const DRAFT_8 = { limit: 1, legacyHeaders: false, standardHeaders: 'draft-8' };
const byKey = (keyGenerator) => ({ ...DRAFT_8, keyGenerator });

test.each([
  ['a function', { ...DRAFT_8, identifier: (req) => `for-${req.method}` }],
  ['an async function', { ...DRAFT_8, identifier: async (_req, res) => `s${res.statusCode}` }],
  [
    'a function of req.rateLimit',
    { ...DRAFT_8, identifier: ({ rateLimit: { limit, key } }) => `${limit} of ${key}` },
  ],
  ['a key of other characters', byKey(() => 'schlüssel ключ 🔑')],
  ['an empty key', byKey(() => '')],
  ['a key with a NUL and a lone surrogate', byKey(() => 'a\0\ud800')],
  ['a megabyte of key', byKey(() => 'k'.repeat(2 ** 20))],
])('draft 8 with %s: answered alike', async (_what, options) => {
  const { ours, theirs } = await playBoth(options, {}, [[0, 3]]);
  expect(ours).toEqual(theirs);
  expect(ours.map(({ status }) => status)).toEqual([200, 429, 429]);
});

test.each([
  1, 500, 999.5, 1000, 1500, 59_999, 60_000, 90_000, 5_400_000, 3_600_000, 7_200_000, 86_400_000,
  129_600_000, 604_800_000,
])('a window of %d ms has the same name and length in draft 8', async (windowMs) => {
  // One request only: the peer's window ends by a timer of real time.
  const { ours, theirs } = await playBoth({ ...DRAFT_8, windowMs }, {}, [[0, 1]]);
  expect(ours).toEqual(theirs);
});

test.each(['draft-6', 'draft-7', 'draft-8'])(
  'two limiters behind one another with %s: answered alike',
  async (standardHeaders) => {
    const play = async (make) => {
      const app = express();
      app.use(make({ windowMs: 1000, limit: 3, standardHeaders }));
      app.use(make({ windowMs: 60_000, limit: 2, standardHeaders, requestPropertyName: 'minute' }));
      app.get('/', (_req, res) => res.send('passed'));
      const answers = [];
      for (let i = 0; i < 4; i++) {
        const { status, text, headers } = await get(app);
        answers.push({ status, text, headers });
      }
      return answers;
    };
    const theirs = await play((options) => expressRateLimit({ ...options, validate: false }));
    const ours = await play((options) => rateLimit({ ...options, clock: time.clock }));
    expect(ours).toEqual(theirs);
    expect(ours.map(({ status }) => status)).toEqual([200, 200, 429, 429]);
  },
);

const OUTCOMES = [
  ['skipFailedRequests', {}],
  ['skipSuccessfulRequests', {}],
  ['skipFailedRequests', { requestWasSuccessful: (_req, res) => res.statusCode !== 404 }],
  ['skipFailedRequests', { requestWasSuccessful: async (_req, res) => res.statusCode !== 404 }],
  ['skipSuccessfulRequests', { requestWasSuccessful: (req) => req.path === '/missing' }],
];

test.each(OUTCOMES)('%s with %o counts the same requests', async (name, options) => {
  const paths = ['/', '/missing', '/', '/missing', '/missing', '/', '/', '/missing', '/'];
  const play = async (middleware) => {
    const app = appWith(middleware);
    const answers = [];
    for (const path of paths) {
      const { status, text, headers } = await get(app, path);
      const { connection, ...compared } = headers;
      answers.push({ status, text, headers: compared });
    }
    return answers;
  };
  const shared = { windowMs: WINDOW_MS, limit: 3, standardHeaders: 'draft-7', ...options };
  const theirs = await play(expressRateLimit({ ...shared, [name]: true, validate: false }));
  const ours = await play(rateLimit({ ...shared, [name]: true, clock: time.clock }));
  expect(ours).toEqual(theirs);
  expect(ours.map(({ status }) => status)).toContain(429);
});

test('where they differ: no double burst around the edge of a window', async () => {
  const edge = [
    [0, 1],
    [WINDOW_MS - 1, 2],
    [1, 3],
  ];
  const { ours, theirs } = await playBoth({ windowMs: WINDOW_MS, limit: 3 }, {}, edge);
  const passed = (answers) => answers.slice(1).filter(({ status }) => status === 200).length;
  expect(passed(theirs)).toBe(5);
  expect(passed(ours)).toBe(3);
});
