// The same requests through rollgate and express-rate-limit, wherever a rolling window answers alike.
'use strict';

const expressRateLimit = require('express-rate-limit');
const { rateLimit } = require('../..');
const { randomFrom } = require('../support/traces');
const { appWith, get, useHandMovedClock } = require('./apps');

const time = useHandMovedClock();
const WINDOW_MS = 90_400;

/** `steps` are [ms to wait before it, path]; returns the answers without what differs by design. */
async function play(middleware, steps) {
  const app = appWith(...[].concat(middleware));
  const answers = [];
  for (const [ms, path] of steps) {
    time.advance(ms);
    const { status, text, headers } = await get(app, path);
    const { connection, ...compared } = headers;
    // Without the legacy headers, Date is Node's own, in real time.
    if (headers['x-ratelimit-limit'] === undefined) delete compared.date;
    answers.push({ status, text, headers: compared });
  }
  return answers;
}

/** Plays the same steps on both, starting at the same time; returns the statuses. */
async function expectSame(create, steps) {
  const start = Date.now();
  const theirs = await play(
    create((options) => expressRateLimit({ validate: false, ...options })),
    steps,
  );
  jest.setSystemTime(start);
  const own = (options, more) => rateLimit({ ...options, ...more, clock: time.clock });
  const ours = await play(create(own), steps);
  expect(ours).toEqual(theirs);
  return ours.map(({ status }) => status);
}

const requests = (...groups) =>
  groups.flatMap(([ms, times]) => {
    return Array.from({ length: times }, (_, i) => [i === 0 ? ms : 0, '/']);
  });

describe.each([
  { legacyHeaders: true, standardHeaders: false },
  { legacyHeaders: false, standardHeaders: true },
  { legacyHeaders: true, standardHeaders: 'draft-6' },
  { legacyHeaders: false, standardHeaders: 'draft-7', identifier: 'unused' },
  { legacyHeaders: false, standardHeaders: 'draft-8' },
  { legacyHeaders: true, standardHeaders: 'draft-8', identifier: 'api' },
  { legacyHeaders: false, standardHeaders: false },
])('with %j', (headers) => {
  const limits = { windowMs: WINDOW_MS, limit: 3, ...headers };

  test('a burst, and another one a window later', async () => {
    const steps = requests([0, 5], [WINDOW_MS, 4]);
    const statuses = await expectSame((limit) => limit(limits), steps);
    expect(statuses).toEqual([200, 200, 200, 429, 429, 200, 200, 200, 429]);
  });

  test('requests spread over a window, with uncounted refusals', async () => {
    const steps = requests([0, 1], [1, 1], [999, 1], [30_000, 2], [59_399, 1]);
    const statuses = await expectSame((limit) => limit(limits, { countBlocked: false }), steps);
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429]);
  });

  test('limit 0', async () => {
    const statuses = await expectSame((limit) => limit({ ...limits, limit: 0 }), requests([0, 2]));
    expect(statuses).toEqual([429, 429]);
  });
});

test('requests that are taken back', async () => {
  const isFound = (_req, res) => res.statusCode !== 404;
  const paths = ['/', '/missing', '/', '/missing', '/missing', '/', '/', '/missing', '/'];
  const steps = paths.map((path) => [0, path]);
  const limits = { windowMs: WINDOW_MS, limit: 3, standardHeaders: 'draft-7' };
  for (const options of [
    { skipFailedRequests: true },
    { skipSuccessfulRequests: true },
    { skipFailedRequests: true, requestWasSuccessful: isFound },
    { skipFailedRequests: true, requestWasSuccessful: async (...args) => isFound(...args) },
    { skipSuccessfulRequests: true, requestWasSuccessful: (req) => req.path === '/missing' },
  ]) {
    expect(await expectSame((limit) => limit({ ...limits, ...options }), steps)).toContain(429);
  }
});

const DRAFT_8 = { limit: 1, legacyHeaders: false, standardHeaders: 'draft-8' };
test.each([
  ['the defaults', {}],
  ['max', { max: 2 }],
  ['a limit function', { limit: (req) => (req.get('accept') ? 5 : 1) }],
  ['an async limit function', { max: async () => 2, standardHeaders: 'draft-8' }],
  ['a limit function that returns 0', { limit: async () => 0, windowMs: WINDOW_MS }],
  ['limit beside max', { limit: 1, max: 3 }],
  ['undefined options', { limit: undefined, message: undefined, skip: undefined }],
  ['a status code', { limit: 1, statusCode: 503 }],
  ['a message string', { limit: 1, message: 'slow down' }],
  ['a message object', { limit: 1, message: { error: 'slow down', tries: [1, 2] } }],
  ['a message function', { limit: 1, message: (req) => `slow down, ${req.method}` }],
  ['an async message function', { limit: 1, message: async () => ({ error: 'slow down' }) }],
  ['a message that reads the status', { limit: 1, message: (_, res) => `s${res.statusCode}` }],
  ['a message that sets it', { limit: 1, message: (_, res) => void res.status(503) ?? 'later' }],
  ['a message that answers', { limit: 1, message: (_, res) => void res.json({ own: 1 }) }],
  ['a key', { limit: 1, keyGenerator: (req) => req.get('user-agent') ?? 'none' }],
  ['an async key', { limit: 1, keyGenerator: async () => 'all' }],
  ['skip', { limit: 1, skip: () => true }],
  ['async skip', { limit: 1, skip: async () => true }],
  ['a handler', { limit: 1, handler: (_q, res, _n, o) => res.status(o.statusCode).send('no') }],
  ['a handler that lets pass', { limit: 1, handler: (_req, _res, next) => next() }],
  ['an identifier function', { ...DRAFT_8, identifier: (req) => `for-${req.method}` }],
  ['an async one', { ...DRAFT_8, identifier: async (_req, res) => `s${res.statusCode}` }],
  [
    'one of the info',
    { ...DRAFT_8, identifier: ({ rateLimit: { limit: n, key } }) => `${n} ${key}` },
  ],
  ['an odd key in draft 8', { ...DRAFT_8, keyGenerator: () => 'schlüssel ключ 🔑' }],
  ['an empty key in draft 8', { ...DRAFT_8, keyGenerator: () => '' }],
  ['a lone surrogate in draft 8', { ...DRAFT_8, keyGenerator: () => 'a\0\ud800' }],
  ['a megabyte in draft 8', { ...DRAFT_8, keyGenerator: () => 'k'.repeat(2 ** 20) }],
])('%s', async (_what, options) => {
  await expectSame((limit) => limit(options), requests([0, 7]));
});

test('a limit that differs from request to request', async () => {
  const random = randomFrom(3);
  const limits = Array.from({ length: 120 }, () => random.between(1, 60));
  await expectSame(
    (limit) => {
      const left = [...limits];
      return limit({ windowMs: 3_600_000, limit: () => left.shift() }, { countBlocked: true });
    },
    requests([0, limits.length]),
  );
});

test.each([
  1, 500, 999.5, 1000, 1500, 59_999, 60_000, 90_000, 3_600_000, 5_400_000, 7_200_000, 86_400_000,
  129_600_000, 604_800_000,
])('the name of a window of %d ms in draft 8', async (windowMs) => {
  // One request only, because the window of express-rate-limit ends by a timer in real time.
  await expectSame((limit) => limit({ ...DRAFT_8, windowMs }), requests([0, 1]));
});

test.each(['draft-6', 'draft-8'])('two middleware with %s', async (standardHeaders) => {
  const statuses = await expectSame(
    (limit) => {
      const minute = { windowMs: 60_000, limit: 2, requestPropertyName: 'minute' };
      return [
        limit({ windowMs: 1000, limit: 3, standardHeaders }),
        limit({ ...minute, standardHeaders }),
      ];
    },
    requests([0, 4]),
  );
  expect(statuses).toEqual([200, 200, 429, 429]);
});

test('req.rateLimit, getKey and resetKey', async () => {
  const storyOf = async (middleware) => {
    const app = appWith(middleware, (req, res) => res.json(req.rateLimit));
    const key = '127.0.0.1';
    const story = [await middleware.getKey(key)];
    for (let i = 0; i < 2; i++)
      story.push((await get(app)).body, { ...(await middleware.getKey(key)) });
    story.push(await middleware.resetKey(key), await middleware.getKey(key), (await get(app)).body);
    return story;
  };
  const options = { windowMs: WINDOW_MS, limit: 2 };
  const theirs = await storyOf(expressRateLimit({ ...options, validate: false }));
  const ours = await storyOf(rateLimit({ ...options, clock: time.clock }));
  expect(ours).toEqual(theirs);
  expect(ours[3]).toMatchObject({ limit: 2, used: 2, remaining: 0, key: '127.0.0.1' });
});
