// Errors on the way of a request: each reaches next(err), once, and the limiter lives on.
'use strict';

const RateLimiter = require('../..');
const { appWith, get } = require('./apps');

const { rateLimit } = RateLimiter;
const boom = () => Object.assign(new Error('boom'), { code: 'BOOM' });
const throws = () => {
  throw boom();
};
const rejects = async () => throws();

const DECISION = Object.freeze({
  allowed: false,
  timeLeft: 10,
  actionsLeft: 0,
  resetIn: 10,
  blockedBy: 'count',
  limits: [{ interval: 10, maxInInterval: 1, used: 1, remaining: 0, resetIn: 10 }],
});
const refusing = { attempt: () => DECISION };
const refusingLater = { attempt: async () => DECISION };

const CASES = [
  ['skip', { skip: throws }],
  ['skip, async', { skip: rejects }],
  ['keyGenerator', { keyGenerator: throws }],
  ['keyGenerator, async', { keyGenerator: rejects }],
  ['keyGenerator after async skip', { skip: async () => false, keyGenerator: throws }],
  ['handler', { limiter: refusing, handler: throws }],
  ['handler, async', { limiter: refusing, handler: rejects }],
  ['handler after an async limiter', { limiter: refusingLater, handler: throws }],
  ['async handler after an async limiter', { limiter: refusingLater, handler: rejects }],
  [
    'what handler returns',
    {
      limiter: refusing,
      handler: () => Object.defineProperty({}, 'then', { get: throws }),
    },
  ],
  ['message', { limiter: refusing, message: throws }],
  ['message, async', { limiter: refusing, message: rejects }],
  ['the limiter', { limiter: { attempt: throws } }],
  ['the limiter, async', { limiter: { attempt: rejects } }],
  [
    'the limiter after an async key',
    { keyGenerator: async () => 'k', limiter: { attempt: throws } },
  ],
];

test.each(CASES)('an error in %s reaches next(err) once', async (_where, options) => {
  const next = jest.fn();
  const res = { headersSent: false, setHeader() {} };
  await rateLimit(options)({ ip: '192.0.2.1' }, res, next);
  expect(next.mock.calls).toEqual([[expect.objectContaining({ code: 'BOOM' })]]);
});

test.each(CASES)(
  'an error in %s is answered by the error handler of Express',
  async (_w, options) => {
    const { status, body } = await get(appWith(rateLimit(options)));
    expect([status, body.code]).toEqual([500, 'BOOM']);
  },
);

test.each([undefined, null, 0, '', 'route', 'router'])(
  'throwing %j, which next() would take for "go on", lets nothing through',
  async (thrown) => {
    const keyGenerator = () => {
      throw thrown;
    };
    const { status, body } = await get(appWith(rateLimit({ keyGenerator })));
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_THROWN']);
  },
);

test('an error that next() throws is not given to next() again', () => {
  const next = jest.fn(throws);
  const res = { headersSent: false, setHeader() {} };
  expect(() => rateLimit()({ ip: '192.0.2.1' }, res, next)).toThrow('boom');
  expect(next.mock.calls).toEqual([[]]);
});

test('a header that cannot be set is an error, unless headers are sent already', () => {
  const next = jest.fn();
  const ask = (headersSent) => {
    rateLimit()({ ip: '192.0.2.1' }, { headersSent, setHeader: throws }, next);
  };
  ask(false);
  ask(true);
  expect(next.mock.calls).toEqual([[expect.objectContaining({ code: 'BOOM' })], []]);
});

test.each([[{}], [Number.NaN], [Symbol('id')], [true]])(
  'a keyGenerator that gives %p, which is no id, is an error',
  async (key) => {
    const { status, body } = await get(appWith(rateLimit({ keyGenerator: () => key })));
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_ID']);
  },
);

test('a clock that fails once is one failed request', async () => {
  let now = Number.NaN;
  const app = appWith(rateLimit({ limit: 1, clock: () => now }));
  expect((await get(app)).body.code).toBe('ERR_ROLLGATE_CLOCK');
  now = 1;
  expect((await get(app)).status).toBe(200);
  expect((await get(app)).status).toBe(429);
});

test('a closed limiter is an error, not an open door', async () => {
  const limiter = RateLimiter({ interval: 1000, maxInInterval: 1 });
  const app = appWith(rateLimit({ limiter }));
  await limiter.close();
  expect((await get(app)).body.code).toBe('ERR_ROLLGATE_CLOSED');
});

test('getKey and resetKey reject, and never throw', async () => {
  const middleware = rateLimit({ limiter: { attempt: throws, peek: throws, clear: throws } });
  await expect(middleware.getKey('k')).rejects.toThrow('boom');
  await expect(middleware.resetKey('k')).rejects.toThrow('boom');
});
