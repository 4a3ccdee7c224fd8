// One program for Node and for every host without its modules: what it returns must be the same on all of them.

const ALGORITHMS = ['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra'];
const STEPS = 400;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** The last one is too long for the key of a store, which has its hash. */
const IDS = ['ada', 'ü}{', 'an id of more than sixteen characters', 7, 2n ** 70n, 'é'.repeat(300)];

/** Mulberry32: the same numbers everywhere. */
function createRandom(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** A store over a Map, as users write one. */
export function createKv() {
  const entries = new Map();
  let versions = 0;
  return {
    entries,
    get: (key) => entries.get(key) ?? null,
    set(key, value, version) {
      if ((entries.get(key)?.version ?? null) !== version) return false;
      versions += 1;
      entries.set(key, { value: value.slice(), version: versions });
      return true;
    },
    delete: (key) => void entries.delete(key),
    list: (prefix) => [...entries.keys()].filter((key) => key.startsWith(prefix)),
  };
}

const codeOf = ({ code, message }) => code ?? message;

function shown(decision) {
  const { allowed, timeLeft, actionsLeft, blockedBy, limits } = decision;
  const windows = limits.map(({ used, remaining, resetIn }) => [used, remaining, resetIn]);
  return [allowed, timeLeft, actionsLeft, blockedBy, windows];
}

const namedLimits = (most) => [
  { name: 'requests', interval: 1000, maxInInterval: most },
  { name: 'tokens', interval: MINUTE, maxInInterval: 100 * most },
];

/** Random calls on one limiter, on a clock that mostly goes forward; with a store, all answers are promises. */
async function trace(RateLimiter, algorithm, options) {
  const random = createRandom(ALGORITHMS.indexOf(algorithm));
  let now = 1_700_000_000_000;
  const common = { limits: namedLimits(5), algorithm, blockFor: 250, clock: () => now };
  const limiter = RateLimiter({ ...common, ...options });
  const answers = [];
  const decisions = [];
  const remember = (decision) => {
    decisions.push(decision);
    return shown(decision);
  };
  const cost = () => ({ requests: random(3), tokens: 1 + random(200) });
  const calls = [
    (id) => limiter(id),
    async (id) => remember(await limiter.attempt(id)),
    async (id) => remember(await limiter.attempt(id, { cost: cost() })),
    async (id) => shown(await limiter.peek(id, { cost: cost() })),
    async (id) => (await limiter.attemptMany([id, 'bob', id])).map(shown),
    () => decisions.length > 0 && limiter.settle(decisions.pop(), cost()),
    () => decisions.length > 0 && limiter.refund(decisions.shift()),
    (id) => random(8) === 0 && limiter.block(id, random(2000)),
    (id) => random(8) === 0 && limiter.clear(id),
    () => random(8) === 0 && limiter.setLimits(namedLimits(3 + random(4))),
    () => random(8) === 0 && limiter.clearAll(),
  ];
  for (let step = 0; step < STEPS; step += 1) {
    now += random(20) === 0 ? -random(100) : random(80);
    const call = calls[random(calls.length)];
    const id = IDS[random(IDS.length)];
    try {
      answers.push((await call(id)) ?? null);
    } catch (error) {
      answers.push(codeOf(error));
    }
  }
  return answers;
}

async function overKv(RateLimiter, algorithm) {
  const kv = createKv();
  const answers = await trace(RateLimiter, algorithm, { kv, namespace: 'api' });
  return { answers, keys: [...kv.entries.keys()] };
}

/** In real time: one after the other, a deadline, a signal, a limiter that closes. */
async function waits(RateLimiter) {
  const two = RateLimiter({ interval: 20, maxInInterval: 2, countBlocked: false });
  const order = [];
  const waiting = [0, 1, 2, 3, 4, 5].map(async (number) => {
    const { allowed } = await two.wait('ada');
    order.push([number, allowed]);
  });
  await Promise.all(waiting);

  const slow = RateLimiter({ interval: HOUR, maxInInterval: 1 });
  slow('ada');
  const fails = (options) => slow.wait('ada', options).then(shown, (error) => codeOf(error));
  const late = await fails({ deadline: 10 });
  const controller = new AbortController();
  const aborted = fails({ signal: controller.signal });
  const full = await fails({ maxQueue: 1 });
  controller.abort(new Error('aborted'));
  const closed = fails({});
  await slow.close();
  return { order, late, full, aborted: await aborted, closed: await closed };
}

/** By the host's own clock: refused for an hour. Callbacks come later. */
async function inRealTime(RateLimiter) {
  const slow = RateLimiter({ interval: 1000 * HOUR, maxInInterval: 1 });
  const order = [];
  const called = new Promise((resolve) => {
    slow('ada', (...answer) => resolve(order.push('called back', answer)));
  });
  order.push('returned');
  await called;
  return { order, isRefused: slow('ada') > 0 };
}

/** More than the memory that a host begins with. */
function manyKeys(RateLimiter) {
  const limiter = RateLimiter({ interval: MINUTE, maxInInterval: 1, maxKeys: 1000 });
  for (let id = 0; id < 20_000; id += 1) limiter(`${id}`);
  const { keys, allowed, evicted } = limiter.stats();
  return { keys, allowed, evicted };
}

/** The codes of errors of the package and of the core. */
function refusals(RateLimiter) {
  const good = { interval: 1000, maxInInterval: 1 };
  const limiter = RateLimiter(good);
  return [
    () => RateLimiter({ ...good, maxInInterval: 1.5 }),
    () => RateLimiter({ ...good, kv: new Map(), namespace: 'api' }),
    () => limiter({}),
    () => limiter('ada', 5),
    () => limiter.attempt('ada', { cost: 2 }),
    () => RateLimiter({ ...good, clock: () => Number.NaN })('ada'),
  ].map((call) => {
    try {
      return call() && 'nothing was thrown';
    } catch (error) {
      return codeOf(error);
    }
  });
}

async function forEachAlgorithm(run) {
  const results = {};
  for (const algorithm of ALGORITHMS) results[algorithm] = await run(algorithm);
  return results;
}

/** @param {object} exported by the package */
export async function run({ RateLimiter }) {
  return {
    memory: await forEachAlgorithm((algorithm) => trace(RateLimiter, algorithm)),
    kv: await forEachAlgorithm((algorithm) => overKv(RateLimiter, algorithm)),
    waits: await waits(RateLimiter),
    inRealTime: await inRealTime(RateLimiter),
    manyKeys: manyKeys(RateLimiter),
    refusals: refusals(RateLimiter),
  };
}

/** The codes of what these hosts do not have. */
export function unsupported({ RateLimiter }) {
  const good = { interval: 1000, maxInInterval: 1 };
  return [{ redis: 'redis://127.0.0.1' }, { redis: {} }, { shared: 'api' }].map((options) => {
    try {
      RateLimiter({ ...good, ...options });
      return 'nothing was thrown';
    } catch ({ code }) {
      return code;
    }
  });
}
