// Rules of the middleware that block: in their zone and on every rule.
'use strict';

const { createBlocks } = require('../../lib/middleware/rules/blocks');
const { USAGE } = require('../../lib/internal-methods');
const { setUp } = require('./rules-app');

const MINUTE_MS = 60_000;

describe('blocks', () => {
  const BLOCK_MS = 10 * MINUTE_MS;

  test('blockFor refuses in the zone of its rule, for that long', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/a', limit: 1, windowMs: 1000, blockFor: BLOCK_MS, zone: 'z' },
      { path: '/b', limit: 1, windowMs: 1000, blockFor: BLOCK_MS, zone: 'z' },
      { path: '/c', limit: 1, windowMs: 1000 },
    ]);
    expect(await statuses('/a', '/a', '/c')).toEqual([200, 429, 200]);
    hand.now += BLOCK_MS - 1;
    const refused = await ask('/b');
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
    expect(await statuses('/c')).toEqual([200]);
    hand.now += 1;
    expect(await statuses('/b')).toEqual([200]);
  });

  test('blockEverywhere refuses on every rule with limits, that id only, and not for longer', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/health' },
      { path: '/login', limit: 1, windowMs: 1000, blockFor: BLOCK_MS, blockEverywhere: true },
      { path: '/other', limit: 7, windowMs: 2000 },
    ]);
    expect(await statuses('/other', '/login', '/other', '/login')).toEqual([200, 200, 200, 429]);
    hand.now += BLOCK_MS - 3000;
    const { status, headers } = await ask('/other');
    expect(status).toBe(429);
    expect(headers).toMatchObject({
      'retry-after': '3',
      'x-ratelimit-limit': '7',
      'x-ratelimit-remaining': '0',
    });
    expect(await statuses('/login', '/health', '/nowhere')).toEqual([429, 200, 200]);
    expect(await statuses(['/other', { id: 'bob' }])).toEqual([200]);
    hand.now += 3000 - 1;
    expect(await statuses('/other')).toEqual([429]);
    hand.now += 1;
    const { body } = await ask('/other');
    expect(body.used).toBe(1); // what was refused meanwhile left no trace
    expect(await statuses('/login')).toEqual([200]);
  });

  test('blockEverywhere lasts as long as the block, though the window is longer', async () => {
    const { hand, statuses } = setUp([
      {
        path: '/login',
        limit: 1,
        windowMs: 60 * MINUTE_MS,
        blockFor: MINUTE_MS,
        blockEverywhere: true,
      },
      { path: '/', limit: 9 },
    ]);
    expect(await statuses('/login', '/login', '/')).toEqual([200, 429, 429]);
    hand.now += MINUTE_MS;
    expect(await statuses('/', '/login')).toEqual([200, 429]);
  });

  test('blockEverywhere goes with the lengths of a growing list', async () => {
    const lengths = [1000, 5000, 20_000];
    const { hand, statuses } = setUp([
      {
        path: '/login',
        limit: 1,
        windowMs: 30 * MINUTE_MS,
        blockFor: lengths,
        blockEverywhere: true,
      },
      { path: '/', limit: 1000 },
    ]);
    await statuses('/login');
    for (const length of [...lengths, 20_000]) {
      expect(await statuses('/', '/login', '/')).toEqual([200, 429, 429]);
      hand.now += length - 1;
      expect(await statuses('/')).toEqual([429]);
      hand.now += 1;
    }
  });

  test('blocks of several lengths: the longest counts', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/a', limit: 1, blockFor: 1000, blockEverywhere: true },
      { path: '/b', limit: 1, blockFor: 5000, blockEverywhere: true },
      { path: '/', limit: 9 },
    ]);
    await statuses('/a', '/b', '/b');
    expect((await ask('/')).headers['retry-after']).toBe('5');
    hand.now += 4999;
    expect(await statuses('/a')).toEqual([429]);
    hand.now += 1;
    expect(await statuses('/')).toEqual([200]);
  });

  test('a trap: whoever asks for it is blocked everywhere', async () => {
    const { hand, ask, statuses } = setUp([
      { path: '/.env', limit: 0, blockFor: BLOCK_MS, blockEverywhere: true },
      { path: '/', limit: 100 },
    ]);
    const { headers } = await ask('/.env', { id: 'bob' });
    expect(headers['retry-after']).toBe('600');
    expect(await statuses('/', '/.env', '/')).toEqual([200, 429, 429]);
    hand.now += BLOCK_MS;
    expect(await statuses('/')).toEqual([200]);
  });
});

describe('a block that is recorded nowhere', () => {
  const LEFT_MS = MINUTE_MS / 4;
  const block = { blockFor: MINUTE_MS };
  const limits = { limit: 1, windowMs: 1000, zone: 'z', ...block };

  /** Of the block that began here, so much is left when the rule in force is asked. */
  async function afterBlockBy(first, options) {
    const app = setUp(
      [
        { path: '/first', ...limits, ...first },
        { path: '/login', ...limits, blockEverywhere: true },
        { path: '/other', limit: 100 },
      ],
      options,
    );
    await app.statuses('/first', '/first');
    expect(await app.statuses('/other')).toEqual([200]);
    app.hand.now += MINUTE_MS - LEFT_MS;
    return app;
  }

  test.each([
    ['on trial', { shadow: true, blockEverywhere: true }],
    ['that keeps blocks to its zone', {}],
  ])('as a rule %s began it, is by the next refusal, for what is left', async (_what, first) => {
    const { hand, ask, statuses } = await afterBlockBy(first);
    expect(await statuses('/first', '/other')).toEqual([first.shadow ? 200 : 429, 200]);
    expect(await statuses('/login', '/other')).toEqual([429, 429]);
    expect((await ask('/other')).headers['retry-after']).toBe(`${LEFT_MS / 1000}`);
    hand.now += LEFT_MS - 1;
    expect(await statuses('/other')).toEqual([429]);
    hand.now += 1;
    expect(await statuses('/other', '/login')).toEqual([200, 200]);
  });

  test('is of the length of the list that it belongs to', async () => {
    const blockFor = [1000, MINUTE_MS];
    const rule = { limit: 1, windowMs: 10 * MINUTE_MS, zone: 'z', blockFor };
    const { hand, statuses } = setUp([
      { path: '/first', ...rule },
      { path: '/login', ...rule, blockEverywhere: true },
      { path: '/other', limit: 100 },
    ]);
    await statuses('/first', '/first');
    hand.now += 1000;
    await statuses('/first'); // the second block
    hand.now += LEFT_MS;
    expect(await statuses('/other', '/login', '/other')).toEqual([200, 429, 429]);
    hand.now += MINUTE_MS - LEFT_MS - 1;
    expect(await statuses('/other')).toEqual([429]);
    hand.now += 1;
    expect(await statuses('/other')).toEqual([200]);
  });

  test('is recorded once by requests that come at the same time', async () => {
    const limiter = createBlocks({
      rules: [{ blocksEverywhere: true, policy: { blockFor: [MINUTE_MS] } }],
      storeOptions: { clock: () => 5000 },
    });
    const zone = {
      limiter: { [USAGE]: async () => ({ timeLeft: LEFT_MS }) },
      policy: { blockFor: [MINUTE_MS] },
    };
    const start = () => limiter.start('ada', zone, 'ada', { blockedBy: 'block' });
    await Promise.all([start(), start(), start()]);
    expect(limiter.find('ada').timeLeft).toBe(LEFT_MS);
  });
});

describe('where a block on every rule cannot be recorded', () => {
  /** The clock fails from the second reading on, which is that of the record. */
  function trapWithFailingClock(options) {
    const readings = [1000];
    const clock = () => readings.shift();
    return setUp([{ path: '/', limit: 0, blockFor: 1, blockEverywhere: true }], {
      clock,
      ...options,
    });
  }

  test('the request fails', async () => {
    const { status, body } = await trapWithFailingClock().ask('/');
    expect([status, body.code]).toEqual([500, 'ERR_ROLLGATE_CLOCK']);
  });

  test('the next refusal records it', async () => {
    const hand = { now: 1000 };
    const rules = [
      { path: '/login', limit: 1, windowMs: 1000, blockFor: MINUTE_MS, blockEverywhere: true },
      { path: '/other', limit: 100 },
    ];
    const readings = [];
    const clock = () => (readings.length > 0 ? readings.shift() : hand.now);
    const logger = { warn: jest.fn(), error: jest.fn() };
    const { statuses } = setUp(rules, { clock, passOnStoreError: true, logger });
    await statuses('/login');
    readings.push(1000, 1000, Number.NaN); // of the search, the refusal and the record
    expect(await statuses('/login', '/other')).toEqual([429, 200]);
    expect(logger.error).toHaveBeenCalledTimes(1);
    expect(await statuses('/login', '/other')).toEqual([429, 429]);
  });

  test('with passOnStoreError it is refused all the same, which was decided', async () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const { ask } = trapWithFailingClock({ passOnStoreError: true, logger });
    expect((await ask('/')).status).toBe(429);
    expect(logger.error.mock.calls).toEqual([
      [
        expect.objectContaining({ code: 'ERR_ROLLGATE_CLOCK' }),
        expect.stringContaining('rollgate_block_lost'),
      ],
    ]);
    expect((await ask('/')).status).toBe(200); // now no decision can be made
  });
});
