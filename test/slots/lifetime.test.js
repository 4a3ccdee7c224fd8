// Slots that outlive their turn, their limiter or their owner.
'use strict';

const RateLimiter = require('../..');
const { waitUntil } = require('../support/outcome');
const { askProgram } = require('../support/run-program');
const { catchError } = require('../support/set-up');

const { ConcurrencyLimiter, attemptAll } = RateLimiter;

// Kills: a slot that does not join the net at the end of its turn, or that is kept alive by it.
test('a slot that the program forgets is released, with one warning', async () => {
  const program = `
    require('node:v8').setFlagsFromString('--expose-gc');
    const gc = require('node:vm').runInNewContext('gc');
    const { ConcurrencyLimiter } = require('rollgate');
    const limiter = ConcurrencyLimiter({ max: 100 });
    const warnings = [];
    process.on('warning', ({ code }) => warnings.push(code));
    const kept = limiter.acquire('a');
    for (let i = 0; i < 10; i++) limiter.acquire('a');
    for (let i = 0; i < 10; i++) limiter.acquire('a').release();
    const { setImmediate: turn } = require('node:timers/promises');
    (async () => {
      await turn();
      const before = limiter.stats().held;
      for (let i = 0; i < 100 && limiter.stats().held > 1; i++) {
        gc();
        await turn();
      }
      const { held, leaked } = limiter.stats();
      console.log(JSON.stringify({ before, held, leaked, warnings, released: kept.release() }));
    })();
  `;
  const warnings = ['ROLLGATE_SLOT_LEAKED'];
  const expected = { before: 11, held: 1, leaked: 10, warnings, released: true };
  expect(await askProgram(program)).toEqual(expected);
});

test('nothing keeps a program up', async () => {
  const program = `
    const { ConcurrencyLimiter } = require('rollgate');
    const limiter = ConcurrencyLimiter({ max: 1, maxAge: 60_000 });
    const slot = limiter.acquire('a');
    slot.lost.addEventListener('abort', () => {});
    limiter.acquire('b');
    console.log(JSON.stringify('ends'));
  `;
  expect(await askProgram(program)).toBe('ends');
});

// Kills: a timer for a call that nothing will wake; a timer that does not keep the program up.
test.each([
  [{}, {}, 'nothing'],
  [{ maxAge: 50 }, {}, 'a slot'],
  [{}, { deadline: 50 }, 'ERR_ROLLGATE_WAIT_DEADLINE'],
])(
  'a waiting call keeps a program up until maxAge or its deadline, if any: %j, %j',
  async (...row) => {
    const [options, waiting, outcome] = row;
    const program = `
    const { ConcurrencyLimiter } = require('rollgate');
    const limiter = ConcurrencyLimiter({ max: 1, ...${JSON.stringify(options)} });
    globalThis.held = limiter.acquire('a');
    let outcome = 'nothing';
    limiter.wait('a', ${JSON.stringify(waiting)}).then(
      () => { outcome = 'a slot'; },
      ({ code }) => { outcome = code; },
    );
    process.on('exit', () => console.log(JSON.stringify(outcome)));
  `;
    expect(await askProgram(program)).toBe(outcome);
  },
);

// Kills: a timer that looks once, and a failing clock that ends the process.
test('the signal of a slot aborts when the clock gets there, however late and after failures', async () => {
  let now = 0;
  let reads = 0;
  const clock = () => {
    reads += 1;
    if (now < 0) throw new Error('no time');
    return now;
  };
  const limiter = ConcurrencyLimiter({ max: 1, maxAge: 5, clock });
  const { lost } = limiter.acquire('a');
  await waitUntil('the timer has looked', () => reads >= 5);
  now = -1;
  const seen = reads;
  await waitUntil('the clock has failed', () => reads >= seen + 4);
  expect(lost.aborted).toBe(false);
  now = 5;
  await waitUntil('it is lost', () => lost.aborted);
});

// Kills: a call that waits for want of room for another id, and is never asked again.
test('a call waits while as many other ids are held as may be', async () => {
  const limiter = ConcurrencyLimiter({ max: 1, maxKeys: 1 });
  const slot = limiter.acquire('a');
  const waiting = limiter.wait('b');
  expect(limiter.stats()).toMatchObject({ waiting: 1, blocked: 0, allowed: 1 });
  slot.release();
  expect((await waiting).used).toBe(1);
});

// Kills: the time of a slot that was cleared, read at the end of its turn.
test('a clock that fails at the end of a turn ends no program', async () => {
  let isBroken = false;
  const clock = () => {
    if (isBroken) throw new Error('no time');
    return 0;
  };
  const limiter = ConcurrencyLimiter({ max: 1, clock });
  const slot = limiter.acquire('a');
  limiter.clear('a');
  limiter.stats();
  isBroken = true;
  await new Promise(setImmediate);
  expect(slot.release()).toBe(false);
});

test('ids that nobody holds take no memory', () => {
  const limiter = ConcurrencyLimiter({ max: 1 });
  const fill = (count) => {
    const slots = Array.from({ length: count }, (_, i) => limiter.acquire(`id ${i}`));
    const { bytes, keys } = limiter.stats();
    for (const slot of slots) slot.release();
    return { bytes, keys };
  };
  fill(100);
  const before = limiter.stats().bytes;
  const { bytes, keys } = fill(100_000);
  expect(keys).toBe(100_000);
  expect(bytes).toBeGreaterThan(100 * before);
  fill(10_000);
  const after = limiter.stats();
  expect(after).toMatchObject({ keys: 0, held: 0 });
  expect(after.bytes).toBeLessThanOrEqual(before);
});

describe('attemptAll', () => {
  const limits = { interval: 60_000, maxInInterval: 2 };

  test('takes slots beside limiters, all or nothing', () => {
    const slots = ConcurrencyLimiter({ max: 1 });
    const limiter = RateLimiter(limits);
    const ask = () =>
      attemptAll([
        { limiter: slots, id: 'a' },
        { limiter, id: 'a' },
      ]);
    const first = ask();
    expect(first.allowed).toBe(true);
    const [slot] = first.decisions;
    const second = ask();
    expect([second.allowed, second.refusedBy, second.decisions[0].allowed]).toEqual([
      false,
      0,
      false,
    ]);
    expect(limiter.usage('a').used).toBe(1);
    expect(slot.release()).toBe(true);
    expect(ask().allowed).toBe(true);
    slots.clear('a');
    expect(ask()).toMatchObject({ allowed: false, refusedBy: 1 });
    expect(slots.usage('a').used).toBe(0);
  });

  test('what is refused for want of room for an id leaves no trace in the other limiters', () => {
    const slots = ConcurrencyLimiter({ max: 1, maxKeys: 1 });
    slots.acquire('other');
    const limiter = RateLimiter({ ...limits, minDifference: 1000 });
    const entries = [
      { limiter, id: 'a' },
      { limiter: slots, id: 'a' },
    ];
    expect(attemptAll(entries).refusedBy).toBe(1);
    expect(limiter.attempt('a').allowed).toBe(true);
  });

  test('an entry may have a maximum of its own: a plan', () => {
    const slots = ConcurrencyLimiter({ max: 5 });
    const ask = (max) => attemptAll([{ limiter: slots, id: 'a', max }]);
    expect(ask(1).decisions[0]).toMatchObject({ allowed: true, max: 1 });
    expect(ask(1)).toMatchObject({ allowed: false, decisions: [{ max: 1, used: 1 }] });
    expect(ask(2).allowed).toBe(true);
    const error = catchError(() => attemptAll([{ limiter: RateLimiter(limits), id: 'a', max: 1 }]));
    expect(error.code).toBe('ERR_ROLLGATE_OPTION');
  });

  test('per key and in all is two entries of one limiter', () => {
    const slots = ConcurrencyLimiter({ max: 3 });
    const entries = (id) => [
      { limiter: slots, id },
      { limiter: slots, id: 'all', cost: 2 },
    ];
    expect(attemptAll(entries('a')).allowed).toBe(true);
    expect(attemptAll(entries('b')).refusedBy).toBe(1);
    expect(slots.usage('b').used).toBe(0);
    const error = catchError(() => attemptAll([{ limiter: slots, id: 'a', cost: 4 }]));
    expect(error.code).toBe('ERR_ROLLGATE_COST');
  });
});
