// passOnStoreError: requests pass uncounted where no decision can be made, and only there.
'use strict';

const RateLimiter = require('../..');
const { appWith, get } = require('./apps');

const { rateLimit } = RateLimiter;
const fails = () => {
  throw Object.assign(new Error('down'), { code: 'ERR_ROLLGATE_REDIS_TIMEOUT' });
};
const STORES = [
  ['throws', { attempt: fails }],
  ['rejects', { attempt: async () => fails() }],
];

test.each(STORES)('a store that %s lets requests pass, without headers', async (_what, limiter) => {
  const logger = { warn: jest.fn(), error: jest.fn() };
  const app = appWith(rateLimit({ limiter, passOnStoreError: true, logger }));
  for (let i = 0; i < 2; i++) {
    const { status, text, headers } = await get(app);
    expect([status, text]).toEqual([200, 'passed']);
    expect(headers).not.toHaveProperty('x-ratelimit-limit');
  }
  expect(logger.error).toHaveBeenCalledTimes(2);
  expect(logger.error.mock.calls[0]).toEqual([
    expect.objectContaining({ code: 'ERR_ROLLGATE_REDIS_TIMEOUT' }),
    expect.stringContaining('docs/errors.md#rollgate_passed_on_store_error'),
  ]);
});

test.each(STORES)('without it a store that %s is an error', async (_what, limiter) => {
  for (const passOnStoreError of [false, undefined]) {
    const { status, body } = await get(appWith(rateLimit({ limiter, passOnStoreError })));
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_REDIS_TIMEOUT']);
  }
});

test('without a logger it is one warning of the process', async () => {
  const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
  try {
    const app = appWith(rateLimit({ limiter: { attempt: fails }, passOnStoreError: true }));
    await get(app);
    await get(app);
    expect(warn.mock.calls.map(([, { code }]) => code)).toEqual(['ROLLGATE_PASSED_ON_STORE_ERROR']);
  } finally {
    warn.mockRestore();
  }
});

test.each([[{}], [Number.NaN], [['a', 'b']]])(
  'a key that is no id, as %p, is no way around the limit',
  async (key) => {
    const app = appWith(rateLimit({ keyGenerator: () => key, passOnStoreError: true }));
    const { status, body } = await get(app);
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_ID']);
  },
);

test('errors of other functions stay errors', async () => {
  const app = appWith(rateLimit({ keyGenerator: fails, passOnStoreError: true }));
  expect((await get(app)).status).toBe(500);
});

test('with a store that answers it changes nothing', async () => {
  const app = appWith(rateLimit({ limit: 1, passOnStoreError: true }));
  expect((await get(app)).status).toBe(200);
  expect((await get(app)).status).toBe(429);
});
