// The option authenticate: who asks, with rules and without.
'use strict';

const { rateLimit } = require('../..');
const { byHeaders, setUp } = require('./rules-app');

describe('authenticate', () => {
  const rules = [{ path: '/', group: 'staff', limit: 1 }];

  test('may answer later', async () => {
    const authenticate = async () => ({ id: 'ada', group: 'staff' });
    expect(await setUp(rules, { authenticate }).statuses('/', '/')).toEqual([200, 429]);
  });

  test('without rules its id is the key', async () => {
    for (const authenticate of [byHeaders, async (req) => byHeaders(req)]) {
      const { ask, statuses } = setUp(undefined, { authenticate, limit: 1 });
      expect((await ask('/')).body.key).toBe('ada');
      expect(await statuses('/', ['/', { id: 'bob' }])).toEqual([429, 200]);
      const { middleware } = setUp(undefined, { authenticate, limit: 1 });
      expect(middleware).toHaveLength(3);
    }
  });

  const failures = [
    [
      'throws',
      () => {
        throw new Error('no token');
      },
      { message: 'no token' },
    ],
    ['rejects', () => Promise.reject(new Error('no token')), { message: 'no token' }],
    [
      'throws nothing',
      () => {
        throw undefined;
      },
      { code: 'ERR_ROLLGATE_THROWN' },
    ],
    ['gives nothing', () => undefined, { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    ['gives null, later', async () => null, { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    ['gives an id alone', () => 'ada', { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    ['gives no id', () => ({ group: 'staff' }), { code: 'ERR_ROLLGATE_AUTHENTICATE' }],
    [
      'gives a group that is none',
      () => ({ id: 1, group: 5 }),
      { code: 'ERR_ROLLGATE_AUTHENTICATE' },
    ],
  ];

  test.each(failures)('that %s is an error for next', async (_what, authenticate, error) => {
    for (const options of [{ authenticate }, { authenticate, passOnStoreError: true }]) {
      const { status, body } = await setUp(rules, options).ask('/');
      expect(status).toBe(500);
      expect(body).toMatchObject(error);
      const { body: withoutRules } = await setUp(undefined, options).ask('/');
      expect(withoutRules).toMatchObject(error);
    }
  });

  test.each(failures)('that %s is for onAuthError to answer', async (_what, authenticate) => {
    const onAuthError = jest.fn((_error, _req, res, _next) => void res.status(401).end());
    const { status } = await setUp(rules, { authenticate, onAuthError }).ask('/');
    expect(status).toBe(401);
    expect(onAuthError).toHaveBeenCalledTimes(1);
  });

  const fails = { authenticate: () => Promise.reject(new Error('no token')) };

  test('onAuthError gets the error and may let the request pass, uncounted', async () => {
    const onAuthError = jest.fn(async (_error, _req, _res, next) => next());
    const { status, body } = await setUp(rules, { ...fails, onAuthError }).ask('/');
    expect([status, body]).toEqual([200, null]);
    expect(onAuthError.mock.calls[0][0].message).toBe('no token');
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('worse');
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('worse');
      },
    ],
  ])('onAuthError that %s itself: its error reaches next, once', async (_what, onAuthError) => {
    const next = jest.fn();
    const req = { method: 'GET', url: '/', headers: {} };
    await rateLimit({ rules, ...fails, onAuthError })(req, {}, next);
    expect(next.mock.calls).toEqual([[expect.objectContaining({ message: 'worse' })]]);
  });

  test('is not asked where no rule could apply', async () => {
    const { statuses } = setUp([{ path: '/api', method: 'POST', limit: 1 }], fails);
    expect(await statuses('/', '/api', ['/api', { method: 'post' }])).toEqual([200, 200, 500]);
  });
});
