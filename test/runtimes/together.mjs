// Programs of limiters beside others: processes, threads, shared regions, stores and servers. The first argument
// chooses one; the last line is the result.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import v8 from 'node:v8';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import RateLimiter, { rateLimit, unlinkShared } from 'rollgate';

const ALGORITHMS = ['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra'];
const allowedOf = (decisions) => decisions.map(({ allowed }) => allowed);
const FIVE = { interval: 3_600_000, maxInInterval: 5, countBlocked: false };
const ROUNDS = 10;
const THREADS = 3;
const ATTEMPTS = 20_000; // of each process in each round, or of each thread
const MAX = 10_000;
/** The WebAssembly module has no shared memory. */
const HAS_SHARED = process.env.ROLLGATE_BINDING !== 'wasm' && process.platform === 'linux';
const MANY = { interval: 3_600_000, maxInInterval: MAX, countBlocked: false };

/** This program in a process of its own, on this runtime unless another command is given. */
async function inProcess(args, [command, ...first] = JSON.parse(process.env.RUNTIME)) {
  const program = fileURLToPath(import.meta.url);
  const ended = promisify(execFile)(command, [...first, program, ...args]);
  return { code: 0, signal: null, ...(await ended.catch((error) => error)) };
}

const startThread = (data) => new Worker(new URL(import.meta.url), { workerData: data });

function countAllowed(limiter, id = 'ada') {
  let allowed = 0;
  for (let i = 0; i < ATTEMPTS; i += 1) if (limiter(id) === 0) allowed += 1;
  return allowed;
}

const regionOf = (name) => ({ name, maxKeys: 20 });

/** A limiter in memory and, where there is one, another in shared memory. */
function limitersOf(name) {
  const inMemory = RateLimiter(MANY);
  return HAS_SHARED ? [inMemory, RateLimiter({ ...MANY, shared: regionOf(name) })] : [inMemory];
}

/** What threads do, by the task of their data. */
const tasks = {
  memory: () => parentPort.postMessage(countAllowed(RateLimiter(MANY))),
  shared: ({ name }) =>
    parentPort.postMessage(countAllowed(RateLimiter({ ...MANY, shared: regionOf(name) }))),
  count({ name }) {
    const limiters = limitersOf(name);
    parentPort.postMessage('counting');
    for (;;) for (const limiter of limiters) limiter('ada');
  },
};

async function inThreads(data) {
  const workers = Array.from({ length: THREADS }, () => startThread(data));
  const ended = workers.map((worker) => once(worker, 'exit'));
  const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
  return { workers, ended, answers: answers.map(([answer]) => answer) };
}

function fail() {
  throw new Error('on purpose');
}

/** By the name of an end: what leads to it, and the exit code that it has. */
const endings = (limiter, name) => ({
  'nothing left to do': [0, () => {}],
  'process.exit': [7, () => process.exit(7)],
  'an exception': [1, fail],
  'an exception in a callback': [1, () => limiter('ada', fail)],
  'process.exit while a thread counts': [
    7,
    async () => {
      const worker = startThread({ task: 'count', name });
      await once(worker, 'message');
      process.exit(7);
    },
  ],
});

function plainKv() {
  const entries = new Map();
  let versions = 0;
  return {
    get: async (key) => entries.get(key) ?? null,
    async set(key, value, version) {
      if ((entries.get(key)?.version ?? null) !== version) return false;
      versions += 1;
      entries.set(key, { value, version: versions });
      return true;
    },
    delete: async (key) => entries.delete(key),
    list: (prefix) => [...entries.keys()].filter((key) => key.startsWith(prefix)),
    close() {},
  };
}

async function denoKv() {
  if (globalThis.Deno) return globalThis.Deno.openKv(':memory:');
  const { openKv } = await import('@deno/kv');
  const coding = process.versions.bun && { encodeV8: v8.serialize, decodeV8: v8.deserialize };
  return openKv(':memory:', coding); // Bun asks for it; bytes need none
}

async function connectRedis(kind, url) {
  if (kind === 'ioredis') {
    const { Redis } = await import('ioredis');
    const client = new Redis(url);
    return { redis: client, end: () => client.quit() };
  }
  if (kind === 'node-redis') {
    const { createClient } = await import('redis');
    const client = await createClient({ url }).connect();
    return { redis: client, end: () => client.close() };
  }
  return { redis: url, end() {} };
}

/** Limiters of one count: of ten calls five pass; what is refunded or cleared passes again. */
async function checkCounts(limiters, algorithm) {
  const [limiter] = limiters;
  const calls = Array.from({ length: 10 }, (_, i) => limiters[i % limiters.length]('ada'));
  const passed = (await Promise.all(calls)).filter((timeLeft) => timeLeft === 0);
  assert.equal(passed.length, 5, algorithm);
  const many = await limiter.attemptMany(['ada', 'bob', 'eve']);
  assert.deepEqual(allowedOf(many), [false, true, true], algorithm);
  assert.equal(await limiter.refund(many[1]), true);
  await limiter.clear('ada');
  assert.equal(await limiters.at(-1)('ada'), 0, algorithm);
  await limiter.clearAll();
}

const REFUSED = 'refused, `ERR_ROLLGATE_UNSUPPORTED`';

/** The WebAssembly module has no client. */
function assertRefused(url) {
  const wanted = { code: 'ERR_ROLLGATE_UNSUPPORTED', message: /ioredis.*node-redis/s };
  for (const redis of [url, { url }, { cluster: [url] }]) {
    assert.throws(() => RateLimiter({ ...FIVE, redis }), wanted);
  }
  assert.throws(() => RateLimiter.rateLimit({ redis: url }), wanted);
}

/** What this process was allowed in each round; both begin a round together. */
function race(name) {
  const limiter = RateLimiter({ ...MANY, shared: regionOf(name) });
  const arrivals = RateLimiter({ ...MANY, shared: regionOf(`${name}-gate`) });
  return Array.from({ length: ROUNDS }, (_, round) => {
    arrivals(round);
    while (arrivals.peek(round).limits[0].used < 3); // both, and the one that is peeked for
    return countAllowed(limiter, round);
  });
}

const WEB = { windowMs: 60_000, limit: 2, standardHeaders: 'draft-8' };

async function expressWith(middleware) {
  const { default: express } = await import('express');
  const app = express();
  app.use(middleware);
  app.get('/', (_request, response) => response.send('welcome'));
  return http.createServer(app);
}

const servers = {
  express: () => expressWith(rateLimit(WEB)),

  http() {
    const middleware = rateLimit(WEB);
    return http.createServer((request, response) => {
      middleware(request, response, (error) => response.end(error ? 'failed' : 'welcome'));
    });
  },

  async fastify() {
    const { default: createFastify } = await import('fastify');
    const { default: rollgate } = await import('rollgate/fastify');
    const app = createFastify();
    await app.register(rollgate, WEB);
    app.get('/', () => 'welcome');
    await app.ready();
    return app.server;
  },

  async store() {
    const { default: expressRateLimit } = await import('express-rate-limit');
    const { RollgateStore } = await import('rollgate/store');
    return expressWith(expressRateLimit({ ...WEB, store: new RollgateStore() }));
  },
};

function assertIs429({ status, headers }) {
  assert.equal(status, 429);
  const seconds = Number(headers['retry-after']);
  assert.ok(seconds > 0 && seconds <= 60);
}

async function get(port) {
  const request = http.get({ host: '127.0.0.1', port, agent: false });
  const [response] = await once(request, 'response');
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

/** Runs it with a region that is removed afterwards. */
async function withRegion(use) {
  const name = `runtimes-${process.pid}`;
  if (!HAS_SHARED) return use(name);
  try {
    await use(name);
  } finally {
    assert.ok(unlinkShared(name));
    unlinkShared(`${name}-gate`);
  }
  assert.equal(unlinkShared(name), false);
}

/** By name; each is called with the further arguments, and returns another result than that it works. */
const programs = {
  /** A program with live limiters ends by itself, and however else it ends, it is by no signal. */
  async exit() {
    await withRegion(async (name) => {
      for (const [how, [expected]] of Object.entries(endings())) {
        const { code, signal, stdout, stderr } = await inProcess(['end', how, name]);
        assert.deepEqual({ how, code, signal }, { how, code: expected, signal: null }, stderr);
        if (expected === 1) assert.match(stdout + stderr, /on purpose/);
      }
    });
  },

  async end(how, name) {
    const limiters = limitersOf(name);
    globalThis.kept = [limiters, rateLimit({ windowMs: 1000, limit: 2 })];
    for (const limiter of limiters) limiter('ada');
    await endings(limiters[0], name)[how][1]();
  },

  /** This runtime and Node count in one region, in a race, and exactly. */
  async shared() {
    if (!HAS_SHARED) {
      const create = () => RateLimiter({ ...MANY, shared: regionOf('api') });
      assert.throws(create, { code: 'ERR_ROLLGATE_UNSUPPORTED' });
      return REFUSED;
    }
    await withRegion(async (name) => {
      const commands = [undefined, [process.env.NODE]];
      const ended = await Promise.all(
        commands.map((command) => inProcess(['race', name], command)),
      );
      for (const { code, stderr } of ended) assert.equal(code, 0, stderr);
      const [here, node] = ended.map(({ stdout }) => JSON.parse(stdout.split('\n')[0]));
      const sums = here.map((allowed, round) => allowed + node[round]);
      assert.deepEqual(sums, Array(ROUNDS).fill(MAX));
      const raced = here.filter((allowed) => allowed > 0 && allowed < MAX);
      assert.ok(raced.length > 0, 'in no round both were allowed something');

      const shared = regionOf(name);
      const limiter = RateLimiter({ ...MANY, shared });
      assert.equal(limiter.stats().keys, ROUNDS);
      assert.equal(limiter.peek(0).allowed, false);
      const other = RateLimiter({ ...MANY, algorithm: 'gcra', shared });
      assert.throws(() => other('ada'), { code: 'ERR_ROLLGATE_SHARED_MISMATCH' });
      await limiter.clearAll();
      assert.equal(limiter(0), 0);
    });
  },

  async race(name) {
    console.log(JSON.stringify(race(name)));
  },

  /** Each thread counts for itself in memory, all together in shared memory; those that end take nothing along. */
  async 'worker-threads'() {
    await withRegion(async (name) => {
      const own = await inThreads({ task: 'memory' });
      assert.deepEqual(own.answers, Array(THREADS).fill(MAX));
      await Promise.all(own.ended);

      if (HAS_SHARED) {
        const together = await inThreads({ task: 'shared', name });
        const sum = together.answers.reduce((total, allowed) => total + allowed, 0);
        assert.equal(sum, MAX);
        await Promise.all(together.ended);
      }

      const endless = await inThreads({ task: 'count', name });
      await Promise.all(endless.workers.map((worker) => worker.terminate()));
      const [inMemory, shared] = limitersOf(name);
      assert.equal(inMemory('ada'), 0);
      if (!HAS_SHARED) return;
      assert.ok(shared('ada') > 0);
      assert.equal(shared('bob'), 0);
    });
  },

  async kv(kind) {
    const kv = await (kind === 'plain' ? plainKv() : denoKv());
    for (const algorithm of ALGORITHMS) {
      // Two limiters are two processes to a store: they race for each write.
      const options = { ...FIVE, kv, namespace: algorithm, algorithm, commandTimeout: 5000 };
      await checkCounts([RateLimiter(options), RateLimiter(options)], algorithm);
    }
    kv.close();
  },

  async redis(kind) {
    const url = process.env.REDIS_URL;
    if (kind === 'native' && !HAS_SHARED) {
      assertRefused(url);
      return REFUSED;
    }
    const { redis, end } = await connectRedis(kind, url);
    for (const algorithm of ALGORITHMS) {
      const namespace = `${kind}-${process.pid}-${algorithm}`;
      await checkCounts([RateLimiter({ ...FIVE, redis, namespace, algorithm })], algorithm);
    }
    await end();
  },

  /** Two requests pass, the third is refused. */
  async middleware(kind) {
    const server = await servers[kind]();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    const answers = [await get(port), await get(port), await get(port)];
    server.close();
    const seen = answers.slice(0, 2).map(({ status, body }) => [status, body]);
    assert.deepEqual(seen, Array(2).fill([200, 'welcome']));
    assert.match(answers[0].headers.ratelimit, /^"2-in-1min"; r=1; t=\d+$/);
    const { headers } = answers[2];
    assert.match(headers.ratelimit, /^"2-in-1min"; r=0; t=\d+$/);
    assert.match(headers['ratelimit-policy'], /^"2-in-1min"; q=2; w=60; pk=:[\w+/=]+:$/);
    assertIs429(answers[2]);
  },

  /** Ten requests pass, the eleventh is refused. */
  async recipe() {
    const [command, ...args] = JSON.parse(process.env.RUNTIME);
    const file = fileURLToPath(new URL(`recipes/${RECIPE}`, import.meta.url));
    const env = { ...process.env, PORT: '0' };
    const child = spawn(command, [...args, file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const ended = once(child, 'close');
    const printed = once(child.stdout.setEncoding('utf8'), 'data');
    try {
      const [line] = await Promise.race([printed, ended]);
      const { port } = new URL(String(line).trim());
      const answers = [];
      for (let i = 0; i < 11; i += 1) answers.push(await get(port));
      const passed = answers.slice(0, 10).map(({ status }) => status);
      assert.deepEqual(passed, Array(10).fill(200));
      assert.match(answers[0].body, /^Welcome\./);
      assert.match(answers[0].headers.ratelimit, /^"10-in-1min"; r=9; t=\d+$/);
      assertIs429(answers[10]);
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  },
};

/** The file in examples/frameworks for the server of this runtime. */
const RECIPE = globalThis.Bun ? 'bun.mjs' : globalThis.Deno ? 'deno.mjs' : 'http.js';

if (isMainThread) {
  const [name, ...args] = process.argv.slice(2);
  const result = await programs[name](...args);
  console.log(`result: ${result ?? 'works'}`);
} else {
  tasks[workerData.task](workerData);
}
