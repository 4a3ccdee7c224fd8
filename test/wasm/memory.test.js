// The memory of the WebAssembly module: what happens when it ends, and that it is used again.
'use strict';

const { askProgram } = require('../support/run-program');
const { patient, slow } = require('../support/tiers');

/** Each program has the module's own exports in `core`, and can take almost all of its memory. */
const PRELUDE = `
  let core;
  const { Instance } = WebAssembly;
  WebAssembly.Instance = class extends Instance {
    constructor(...args) {
      super(...args);
      core = this.exports;
    }
  };
  const RateLimiter = require('rollgate');
  const HOUR = 3_600_000;
  const PAGE = 65_536;
  const MOST_PAGES = 65_536;
  const pages = () => core.memory.buffer.byteLength / PAGE;
  /** Leaves so many pages of 64 KB that can still be had. */
  const leave = (count) => core.memory.grow(MOST_PAGES - pages() - count);
  const codeOf = (call) => {
    try {
      return call();
    } catch (error) {
      if (error.code === undefined) throw error; // nothing else may come out
      return error.code;
    }
  };
  const codeOfLater = (promise) => promise.then(() => undefined, (error) => error.code ?? String(error));
  const FULL = 'ERR_ROLLGATE_MEMORY';
  /** Takes memory until there is none for the smallest log. */
  function takeAll() {
    const taken = [];
    for (const length of [60, 20, 5, 1]) {
      const limits = Array.from({ length }, (_, i) => ({ interval: HOUR, maxInInterval: 2000 + i }));
      const kv = { get: () => null, set: () => true };
      while (codeOf(() => taken.push(RateLimiter({ limits, kv, namespace: 'n' }))) !== FULL);
    }
    return taken;
  }
  const print = (value) => console.log(JSON.stringify(value));
`;
const ask = (program, options) =>
  askProgram(`${PRELUDE}(async () => {${program}})();`, {
    env: { ROLLGATE_BINDING: 'wasm' },
    flags: ['--expose-gc'],
    ...options,
  });
const FULL = 'ERR_ROLLGATE_MEMORY';
const HASHES_A_GIGABYTE = 6; // times as patient

test('an attempt without memory fails and records nothing; other ids go on, and clear makes room', async () => {
  const found = await ask(`
    const limiter = RateLimiter({ interval: HOUR, maxInInterval: 2 ** 31, clock: () => 0 });
    limiter('other');
    leave(20);
    let allowed = 0;
    let code;
    while ((code = codeOf(() => limiter('a'))) === 0) allowed++;
    const codes = [code, codeOf(() => limiter('a'))];
    const used = limiter.usage('a').used;
    const { allowed: counted, blocked } = limiter.stats();
    const other = [limiter('other'), limiter.usage('other').used, limiter('new')];
    await limiter.clear('a');
    print({ codes, isAllCounted: used === allowed, counted: counted - allowed, blocked, other, after: limiter('a') });
  `);
  expect(found).toEqual({
    codes: [FULL, FULL],
    isAllCounted: true,
    counted: 1,
    blocked: 0,
    other: [0, 2, 0],
    after: 0,
  });
});

test.each(['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra'])(
  'ids that do not fit are refused with an error, and those that are there are decided: %s',
  async (algorithm) => {
    const found = await ask(
      `
      const limiter = RateLimiter({ interval: HOUR, maxInInterval: 2, algorithm, clock: () => 0 });
      limiter('first');
      leave(4);
      let ids = 0;
      let result;
      while ((result = codeOf(() => limiter('id' + ids))) === 0) ids++;
      const many = codeOf(() => limiter.attemptMany(['first', 'new', 'newer']));
      const { keys, evicted } = limiter.stats();
      const last = [limiter('id' + (ids - 1)), limiter('id' + (ids - 1)) > 0];
      const setLimits = codeOf(() => limiter.setLimits([{ interval: HOUR, maxInInterval: 1 }]));
      const still = limiter.usage('id0').limits[0].maxInInterval;
      const clearAll = await codeOfLater(limiter.clearAll());
      const again = [limiter('first'), limiter('id1'), limiter.stats().keys];
      print({ result, many, keys: keys - ids, evicted, last, setLimits, still, clearAll, again });
    `.replace('algorithm,', `algorithm: '${algorithm}',`),
    );
    expect(found).toEqual({
      result: FULL,
      many: FULL,
      keys: 1,
      evicted: 0,
      last: [0, true],
      setLimits: FULL,
      still: 2,
      again: [0, 0, 2],
    });
  },
);

// Kills: clearAll that frees the logs of all ids before it has memory for an empty table.
test('without any memory no call throws anything but this error, and what is counted stays', async () => {
  const found = await ask(`
    const log = RateLimiter({ interval: HOUR, maxInInterval: 1000, clock: () => 0 });
    for (let id = 0; id < 50; id++) for (let i = 0; i <= id; i++) log(id);
    const counter = RateLimiter({ interval: HOUR, maxInInterval: 5, algorithm: 'gcra', clock: () => 0 });
    counter('a');
    const decision = log.attempt('settled');
    leave(4);
    const taken = takeAll();
    const codes = new Set();
    const calls = [
      () => RateLimiter({ limits: Array.from({ length: 64 }, (_, i) => ({ interval: 9, maxInInterval: i + 1 })) }),
      () => RateLimiter({ interval: 9, maxInInterval: 2 })('a'),
      () => RateLimiter({ interval: 9, maxInInterval: 2 ** 20, kv: { get: () => null, set: () => true }, namespace: 'n' }),
      () => log.attempt('x'.repeat(500_000)),
      () => log.settle(decision, 900),
      () => log.setLimits([{ interval: HOUR, maxInInterval: 5000 }]),
      () => counter.setLimits([{ interval: HOUR, maxInInterval: 7 }]),
    ];
    for (const call of calls) codes.add(codeOf(call));
    codes.add(await codeOfLater(log.clearAll()));
    const used = Array.from({ length: 50 }, (_, id) => log.usage(id).used);
    const cleared = [codeOf(() => log.clear(49)), await codeOfLater(counter.clear('a'))];
    await cleared[0];
    const stats = [log.stats().keys, counter.stats().keys];
    log.close();
    const after = [codeOf(() => counter('b')), codeOf(() => counter('c'))];
    print({ codes: [...codes], used, stats, after, taken: taken.length > 0 });
  `);
  expect(found).toEqual({
    codes: [FULL],
    used: Array.from({ length: 50 }, (_, id) => id + 1),
    stats: [50, 0],
    after: [0, 0],
    taken: true,
  });
});

slow.test(
  'an id of half a billion characters is an id, and one for which there is no memory an error',
  async () => {
    const found = await ask(
      `
    const limiter = RateLimiter({ interval: HOUR, maxInInterval: 1, clock: () => 0 });
    const long = 'x'.repeat(2 ** 29 - 25);
    const answers = [limiter(long), limiter(long), limiter(long + 'y')];
    const short = RateLimiter({ interval: HOUR, maxInInterval: 1, clock: () => 0 });
    leave(2);
    const shorter = [short('a'), short('a'), short('x'.repeat(100_000))];
    print({ answers, shorter, keys: [limiter.stats().keys, short.stats().keys] });
  `,
      { patience: HASHES_A_GIGABYTE },
    );
    expect(found).toEqual({ answers: [0, 3_600_000, 0], shorter: [0, 3_600_000, 0], keys: [2, 2] });
  },
  patient(200_000),
);

test('a large state of a key-value store without memory is an error, and the store keeps it', async () => {
  const found = await ask(`
    const entries = new Map();
    const kv = {
      get: (key) => entries.get(key) ?? null,
      set: (key, value) => entries.set(key, { value, version: (entries.get(key)?.version ?? 0) + 1 }) && true,
    };
    const limits = { interval: HOUR, kv, namespace: 'n', clock: () => 0 };
    const limiter = RateLimiter({ ...limits, maxInInterval: 1024 });
    await limiter.attempt('a', { cost: 1000 });
    const [before] = entries.values();
    leave(2);
    takeAll();
    const codes = [await codeOfLater(limiter.attempt('a', { cost: 20 }))];
    const [after] = entries.values();
    print({ codes, isSame: before === after, bytes: before.value.length > 3990, other: (await limiter('b')) });
  `);
  expect(found).toEqual({ codes: [FULL], isSame: true, bytes: true, other: 0 });
});

test.each([
  ['closed', 'limiter.close();'],
  ['dropped', ''],
])('what %s limiters had is used again', async (_, end) => {
  const found = await ask(`
    const tick = () => new Promise((resolve) => setImmediate(resolve));
    async function round(count) {
      for (let i = 0; i < count; i++) {
        const limiter = RateLimiter({ interval: HOUR, maxInInterval: 50, clock: () => 0 });
        for (let id = 0; id < 200; id++) limiter.attempt(id, { cost: 1 + (id % 50) });
        limiter.setLimits([{ interval: HOUR, maxInInterval: 40 }]);
        ${end}
        if (i % 10 === 9) { gc(); await tick(); await tick(); }
      }
    }
    await round(50);
    const before = core.memory.buffer.byteLength;
    await round(1000);
    // Garbage may be collected a few limiters later; a thousand of them need a hundred megabytes.
    print({ grows: core.memory.buffer.byteLength - before > 2 ** 21, before: before < 2 ** 25 });
  `);
  expect(found).toEqual({ grows: false, before: true });
});

test("an overflow of the host's stack in the middle of a call takes nothing from later calls", async () => {
  const found = await ask(`
    const limiter = RateLimiter({ interval: HOUR, maxInInterval: 2, clock: () => 0 });
    let deepest = 0;
    function runaway(depth) {
      deepest = depth;
      limiter('id' + (depth % 100));
      runaway(depth + 1);
    }
    let overflows = 0;
    for (let i = 0; i < 2000; i++) {
      try {
        runaway(0);
      } catch (error) {
        if (error instanceof RangeError) overflows += 1;
      }
    }
    const waits = [limiter('new'), limiter('new'), limiter('new') > 0];
    print({ overflows, waits, keys: limiter.stats().keys });
  `);
  expect(found).toEqual({ overflows: 2000, waits: [0, 0, true], keys: 101 });
});
