// What a rolling window tells in drafts 7, 8 and 10: several windows, names, and when to come back.
'use strict';

const { createHash } = require('node:crypto');
const express = require('express');
const { rateLimit } = require('../..');
const { useHandMovedClock, appWith, get, getTimes } = require('./apps');

const time = useHandMovedClock();
const LIMITS = [
  { interval: 1000, maxInInterval: 2 },
  { interval: 90_000, maxInInterval: 3 },
];
const sha256 = createHash('sha256').update('127.0.0.1').digest('hex');
const PK = `:${Buffer.from(sha256.slice(0, 12)).toString('base64')}:`;

/** The RateLimit headers of answers from an app of its own. */
function appOf(options) {
  const settings = { legacyHeaders: false, countBlocked: false, clock: time.clock, ...options };
  return appWith(rateLimit(settings));
}

const shown = ({ status, headers }) => [
  status,
  headers.ratelimit,
  headers['ratelimit-policy'],
  headers['retry-after'],
];

test('draft 7 tells of every policy and of the state of the tightest window', async () => {
  const app = appOf({ standardHeaders: 'draft-7', limits: LIMITS });
  const policy = '2;w=1, 3;w=90';
  const answers = (await getTimes(app, 3)).map(shown);
  expect(answers).toEqual([
    [200, 'limit=2, remaining=1, reset=1', policy, undefined],
    [200, 'limit=2, remaining=0, reset=1', policy, undefined],
    [429, 'limit=2, remaining=0, reset=1', policy, '1'],
  ]);
  time.advance(1000);
  expect(shown(await get(app))[1]).toBe('limit=3, remaining=0, reset=89');
});

test('draft 7 tells each request its own numbers, whatever it told before', () => {
  const numbers = [0, 1, 7, 8, 31, 256, 1e6, 2 ** 31, 2 ** 53 - 1];
  const windows = numbers.flatMap((maxInInterval) =>
    numbers.flatMap((remaining) => numbers.map((reset) => ({ maxInInterval, remaining, reset }))),
  );
  let decision;
  const middleware = rateLimit({
    limiter: { attempt: () => decision, peek() {}, clear() {} },
    legacyHeaders: false,
    standardHeaders: 'draft-7',
  });
  for (const { maxInInterval, remaining, reset } of [...windows, ...windows.reverse()]) {
    const window = { interval: 1000, maxInInterval, used: 0, remaining, resetIn: reset * 1000 };
    decision = { allowed: true, timeLeft: 0, resetIn: reset * 1000, limits: [window] };
    const told = new Map();
    const res = { headersSent: false, setHeader: (name, value) => told.set(name, value) };
    middleware({ ip: '192.0.2.1' }, res, () => {});
    expect(told.get('RateLimit')).toBe(
      `limit=${maxInInterval}, remaining=${remaining}, reset=${reset}`,
    );
  }
});

test('draft 8 has an item and a policy for each window', async () => {
  const app = appOf({ standardHeaders: 'draft-8', limits: LIMITS });
  const policies = `"2-in-1sec"; q=2; w=1; pk=${PK}, "3-in-1.5min"; q=3; w=90; pk=${PK}`;
  expect(shown(await get(app))).toEqual([
    200,
    '"2-in-1sec"; r=1; t=1, "3-in-1.5min"; r=2; t=90',
    policies,
    undefined,
  ]);
});

test('draft 10 has an item and a policy for each window, each with its partition', async () => {
  const app = appOf({ standardHeaders: 'draft-10', limits: LIMITS });
  const policies = `"2-in-1sec";q=2;w=1;pk=${PK}, "3-in-1.5min";q=3;w=90;pk=${PK}`;
  const first = `"2-in-1sec";r=1;t=1;pk=${PK}, "3-in-1.5min";r=2;t=90;pk=${PK}`;
  expect(shown(await get(app))).toEqual([200, first, policies, undefined]);
});

test('draft 10 with one window: t is the time until quota grows, and Retry-After is no earlier', async () => {
  const app = appOf({ standardHeaders: 'draft-10', windowMs: 60_000, limit: 2 });
  const item = (r, t) => `"2-in-1min";r=${r};t=${t};pk=${PK}`;
  const policy = `"2-in-1min";q=2;w=60;pk=${PK}`;
  expect(shown(await get(app))).toEqual([200, item(1, 60), policy, undefined]);
  time.advance(20_500);
  expect(shown(await get(app))).toEqual([200, item(0, 40), policy, undefined]);
  time.advance(500);
  expect(shown(await get(app))).toEqual([429, item(0, 39), policy, '39']);
  time.advance(38_999);
  expect(shown(await get(app))).toEqual([429, item(0, 1), policy, '1']);
  time.advance(1);
  expect(shown(await get(app))).toEqual([200, item(0, 21), policy, undefined]);
});

test.each([
  ['draft-8', ['"2-in-1sec"; r=0; t=1', '"3-in-1.5min"; r=1']],
  ['draft-10', [`"2-in-1sec";r=0;t=1;pk=${PK}`, `"3-in-1.5min";r=1;pk=${PK}`]],
])(
  '%s: a refusal tells no reset later than its Retry-After, for windows that have room',
  async (standardHeaders, items) => {
    const app = appOf({ standardHeaders, limits: LIMITS });
    const [, , refused] = await getTimes(app, 3);
    expect(shown(refused).slice(0, 2)).toEqual([429, items.join(', ')]);
    expect(refused.headers['retry-after']).toBe('1');
  },
);

test('windows shorter than a second have a length of one, which is the shortest there is', async () => {
  const app = appOf({ standardHeaders: 'draft-10', windowMs: 50, limit: 1 });
  expect((await get(app)).headers['ratelimit-policy']).toBe(`"1-in-0.05sec";q=1;w=1;pk=${PK}`);
});

test('limit 0 has a quota of nothing', async () => {
  const app = appOf({ standardHeaders: 'draft-10', limit: 0, countBlocked: undefined });
  expect(shown(await get(app))).toEqual([
    429,
    `"0-in-1min";r=0;t=60;pk=${PK}`,
    `"0-in-1min";q=0;w=60;pk=${PK}`,
    '60',
  ]);
});

describe('identifier', () => {
  const name = (answer) => answer.headers['ratelimit-policy'].split(';q=')[0];

  test('is quoted as RFC 9651 says', async () => {
    const app = appOf({ standardHeaders: 'draft-10', identifier: 'a "b" \\c' });
    expect(name(await get(app))).toBe('"a \\"b\\" \\\\c"');
  });

  test('of several windows tells which one', async () => {
    const app = appOf({ standardHeaders: 'draft-10', limits: LIMITS, identifier: 'api' });
    const { ratelimit } = (await get(app)).headers;
    expect(ratelimit.match(/"[^"]*"/g)).toEqual(['"api-2-in-1sec"', '"api-3-in-1.5min"']);
  });

  test.each([
    ['a function', (req) => `v${req.query.v}`],
    ['an async function', async (req) => `v${req.query.v}`],
  ])('may be %s, asked for each request', async (_what, identifier) => {
    const app = appOf({ standardHeaders: 'draft-10', identifier });
    expect(name(await get(app, '/?v=1'))).toBe('"v1"');
    expect(name(await get(app, '/?v=2'))).toBe('"v2"');
  });

  test.each([
    ['throws', () => Promise.reject(new Error('boom')), undefined],
    ['gives no text', () => 5, 'ERR_ROLLGATE_OPTION'],
    ['gives a line break', () => 'a\r\nSet-Cookie: b', 'ERR_ROLLGATE_OPTION'],
    ['gives nothing, later', async () => {}, 'ERR_ROLLGATE_OPTION'],
  ])('that %s is an error of that request', async (_what, identifier, code) => {
    const { status, body } = await get(appOf({ standardHeaders: 'draft-8', identifier }));
    expect([status, body.code]).toEqual([500, code]);
  });
});

test('pk tells apart the keys that are apart, and no others', async () => {
  const pk = async (key) => {
    const app = appOf({ standardHeaders: 'draft-10', keyGenerator: () => key });
    return (await get(app)).headers.ratelimit.split('pk=')[1];
  };
  expect(await pk(1)).toBe(await pk('1'));
  expect(await pk(1n)).toBe(await pk('1'));
  expect(await pk(undefined)).toBe(await pk(''));
  expect(await pk('1')).not.toBe(await pk('2'));
});

test('draft 10 of limiters behind one another, and of the application, are joined', async () => {
  const app = express();
  app.use((_req, res, next) => {
    res.setHeader('RateLimit-Policy', '"own";q=1;w=1');
    next();
  });
  const options = { standardHeaders: 'draft-10', legacyHeaders: false, clock: time.clock };
  app.use(rateLimit({ ...options, windowMs: 1000, identifier: 'one' }));
  app.use(rateLimit({ ...options, windowMs: 60_000, identifier: 'two' }));
  app.get('/', (_req, res) => res.end());
  const { headers } = await get(app);
  expect(headers['ratelimit-policy'].match(/"\w+"/g)).toEqual(['"own"', '"one"', '"two"']);
  expect(headers.ratelimit.match(/"\w+"/g)).toEqual(['"one"', '"two"']);
});
