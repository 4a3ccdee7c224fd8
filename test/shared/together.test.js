// One limiter for all that have its name: in worker threads, in processes that may be killed, and in middleware.
'use strict';

const { spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const express = require('express');
const expressRateLimit = require('express-rate-limit').rateLimit;
const request = require('supertest');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const rollgate = require('../../lib/adapters/fastify');
const { partOfRegion } = require('../../lib/stores/shared/region');
const { RollgateStore } = require('../../lib/adapters/express-rate-limit-store');
const { useFastify } = require('../middleware/apps');
const { askProgram } = require('../support/run-program');
const { catchError } = require('../support/set-up');
const { filesOf, newName } = require('../support/shared-regions');
const { patient, slow } = require('../support/tiers');

const { rateLimit } = RateLimiter;
const SMALL = { maxKeys: 50, windowMs: 60_000 };
const SMALL_LIMITS = { maxKeys: 50, interval: 60_000, maxInInterval: 2 };
const ROOT = path.join(__dirname, '..', '..');

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** One window of the epoch, whenever the test runs: the second begins in the year 2255. */
const FOR_EVER = 9_007_199_254_740;

describe('two limiters of one name', () => {
  const pair = (options) => {
    const all = {
      interval: 60_000,
      maxInInterval: 1,
      maxKeys: 1000,
      shared: newName(),
      ...options,
    };
    return [RateLimiter(all), RateLimiter({ ...all })];
  };

  test('know every kind of id as the same one', () => {
    const [one, other] = pair();
    const long = 'x'.repeat(100_000);
    const ids = ['', 'a', 1, 2n, 0.5, 'ä', 'жид', '\ud800', '\udc00', '__proto__', 'a\0b', long];
    for (const id of ids) expect(one(id)).toBe(0);
    for (const id of [...ids, null, '1']) expect(other.peek(id).allowed).toBe(false);
    expect(one.stats().keys).toBe(ids.length);
  });

  test('take back their own attempts, which the other sees, and not those of the other', () => {
    const [one, other] = pair({ countBlocked: false });
    const decision = one.attempt('a');
    expect(() => other.refund(decision)).toThrow(
      expect.objectContaining({ code: 'ERR_ROLLGATE_DECISION' }),
    );
    expect(other.peek('a').allowed).toBe(false);
    expect([one.refund(decision), one.refund(decision)]).toEqual([true, false]);
    expect(other.peek('a').allowed).toBe(true);
  });

  // Kills: an attempt that is not taken back; a refusal that counts, and would reset later.
  test('leave no trace if one takes the last place after the other has asked for several', () => {
    const shared = { interval: 60_000, maxInInterval: 1, maxKeys: 1000, shared: newName() };
    const other = RateLimiter({ ...shared, clock: () => 1000 });
    let readings = 0;
    function clock() {
      readings += 1; // first for the question, then for the attempt
      if (readings > 1) other.attempt();
      return 1000 + readings;
    }
    const user = RateLimiter({ interval: 60_000, maxInInterval: 1 });
    const everybody = RateLimiter({ ...shared, clock });
    const result = RateLimiter.attemptAll([{ limiter: user }, { limiter: everybody }]);
    expect(result).toMatchObject({ allowed: false, refusedBy: 1 });
    expect(user.usage()).toMatchObject({ used: 0 });
    expect(other.usage()).toMatchObject({ used: 1, resetIn: 60_000 });
  });

  test('report the keys and bytes of all, and the attempts of each', () => {
    const [one, other] = pair({ countBlocked: false });
    one('a');
    one('b');
    other('a');
    const bytes = expect.any(Number);
    expect(one.stats()).toEqual({
      keys: 2,
      allowed: 2,
      blocked: 0,
      evicted: 0,
      errors: 0,
      recorded: 0,
      bytes,
    });
    expect(other.stats()).toEqual({ ...one.stats(), allowed: 0, blocked: 1 });
  });
});

/** A log of each fits into a region of a few megabytes, as /dev/shm of a container is small. */
const RACED = { ids: 10, max: process.env.ROLLGATE_SANITIZED ? 100 : 1000 };

/** Asks for each of a few ids again and again until each is refused, and calls `allow(id)` for the rest. */
const RACE = (name, algorithm = 'sliding-window-log') => `
  const RateLimiter = require(${JSON.stringify(ROOT)});
  const limiter = RateLimiter({ shared: '${name}', maxKeys: 10, interval: ${FOR_EVER},
    maxInInterval: ${RACED.max}, algorithm: '${algorithm}', countBlocked: false });
  for (let refused = 0; refused < ${RACED.ids};) {
    refused = 0;
    for (let id = 0; id < ${RACED.ids}; id++) {
      if (limiter('id' + id) === 0) allow(id);
      else refused += 1;
    }
  }
`;
const COUNT = `
  const allowed = Array(${RACED.ids}).fill(0);
  const allow = (id) => { allowed[id] += 1; };
`;

describe.each(ALGORITHMS)('exactly the limit passes: %s', (algorithm) => {
  const exactly = Array(RACED.ids).fill(RACED.max);
  const sums = (reports) =>
    exactly.map((_, id) => reports.reduce((sum, allowed) => sum + allowed[id], 0));

  test('among worker threads', async () => {
    const source = `${COUNT}${RACE(newName(), algorithm)}
      require('node:worker_threads').parentPort.postMessage(allowed);`;
    const workers = Array.from({ length: 4 }, () => new Worker(source, { eval: true }));
    const reports = await Promise.all(
      workers.map(async (worker) => (await once(worker, 'message'))[0]),
    );
    expect(sums(reports)).toEqual(exactly);
  });

  slow.test('among processes, and the region outlives them', async () => {
    const source = `${COUNT}${RACE(newName(), algorithm)} console.log(JSON.stringify(allowed));`;
    const reports = await Promise.all([1, 2, 3].map(() => askProgram(source)));
    expect(sums(reports)).toEqual(exactly);
    expect(await askProgram(source)).toEqual(exactly.map(() => 0));
  });
});

/** Runs programs that write a letter for each allowed attempt; some are killed once they have written so much. */
function letterCounts() {
  const allowed = Array(RACED.ids).fill(0);
  async function countUntil(source, killAfter) {
    const child = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
    let written = 0;
    child.stdout.setEncoding('latin1');
    child.stdout.on('data', (letters) => {
      for (const letter of letters) allowed[letter.charCodeAt(0) - 97] += 1;
      written += letters.length;
      if (written >= killAfter) child.kill('SIGKILL');
    });
    const [code, signal] = await once(child, 'close');
    return { code, signal };
  }

  /** Runs the program `times` times, three at a time, and kills most after up to `most` letters; returns how many. */
  async function killMany(source, times, most) {
    const ends = [];
    const line = async () => {
      while (ends.length < times) {
        ends.push(await countUntil(source, 1 + ((ends.length * 197) % most)));
      }
    };
    await Promise.all([line(), line(), line()]);
    const killed = ends.filter(({ signal }) => signal === 'SIGKILL').length;
    expect(killed).toBeGreaterThan(times / 2);
    expect(await countUntil(source, Infinity)).toEqual({ code: 0, signal: null });
    return killed;
  }
  return { allowed, killMany };
}

slow.test(
  'processes that are killed have counted what they counted, and the others go on',
  async () => {
    const source = `
      const { writeSync } = require('node:fs');
      const allow = (id) => writeSync(1, String.fromCharCode(97 + id));
      ${RACE(newName())}
    `;
    const { allowed, killMany } = letterCounts();
    const killed = await killMany(source, 12, 700);
    // A process that is killed between counting and writing has counted one that nobody knows of.
    const total = sum(allowed);
    expect(Math.max(...allowed)).toBeLessThanOrEqual(RACED.max);
    expect(total).toBeGreaterThanOrEqual(RACED.ids * RACED.max - killed);
  },
  patient(60_000),
);

// Kills: attempts without a question before that are not taken back after a refusal.
slow.test(
  'processes that are killed during attemptAll lose at most the attempts that they were making',
  async () => {
    const names = [newName(), newName(), newName()];
    const MAXIMA = [60, 200, 350]; // of ten users, of two organisations, of everybody
    const limiters = `
      const RateLimiter = require(${JSON.stringify(ROOT)});
      const [user, organisation, everybody] = ${JSON.stringify(names)}.map((shared, i) =>
        RateLimiter({ shared, maxKeys: 10, interval: ${FOR_EVER}, maxInInterval: ${JSON.stringify(MAXIMA)}[i] }));
    `;
    const source = `
      const { writeSync } = require('node:fs');
      ${limiters}
      // Most are taken back, so that processes meet at the limits again and again.
      for (let step = 0, refused = 0; refused < 300; step++) {
        const limiters = [user, organisation, everybody];
        const ids = ['u' + step % 10, 'o' + step % 2, ''];
        const { allowed, decisions } = RateLimiter.attemptAll(limiters.map((limiter, i) => ({ limiter, id: ids[i] })));
        if (!allowed) refused += 1;
        else refused = 0;
        if (allowed && step % 37 === 0) writeSync(1, String.fromCharCode(97 + step % 10));
        else if (allowed) limiters.forEach((limiter, i) => limiter.refund(decisions[i]));
      }
    `;
    const { allowed, killMany } = letterCounts();
    const killed = await killMany(source, 12, 30);
    const used = await askProgram(`
      ${limiters}
      const of = (limiter, ids) => ids.map((id) => limiter.usage(id).used);
      const ids = Array.from({ length: 10 }, (_, i) => 'u' + i);
      console.log(JSON.stringify([of(user, ids), of(organisation, ['o0', 'o1']), of(everybody, [''])]));
    `);
    const organisations = [0, 1].map((i) => sum(allowed.filter((_, user) => user % 2 === i)));
    for (const [i, counted] of [allowed, organisations, [sum(allowed)]].entries()) {
      for (const [j, count] of counted.entries()) {
        expect(used[i][j]).toBeLessThanOrEqual(MAXIMA[i]);
        expect(used[i][j]).toBeGreaterThanOrEqual(count);
      }
      expect(sum(used[i]) - sum(counted)).toBeLessThanOrEqual(killed);
    }
  },
  patient(60_000),
);

const PAUSES = [
  ['x64', 'x86_64-linux-gnu', 'pause|rep nop'], // one instruction with two names
  ['arm64', 'aarch64-linux-gnu', 'isb'],
];
for (const [name, target, instruction] of PAUSES) {
  const isInstalled = ([command]) => spawnSync(command, ['--version']).error === undefined;
  const compilers = [[`${target}-g++`], ['clang++', `--target=${target}`]];
  const [command, ...flags] = compilers.find(isInstalled) ?? [];
  (command ? test : test.skip)(`the back-off is a loop of pauses on ${name}`, () => {
    const input = `
      #include "shared/pause.h"
      void BackOff() { for (int i = 0; i < 512; ++i) rollgate::shared::Pause(); }
    `;
    const options = ['-std=c++20', '-O3', '-I', 'src', '-S', '-x', 'c++', '-', '-o', '-'];
    const compiled = spawnSync(command, [...flags, ...options], { cwd: ROOT, input });
    expect(String(compiled.stderr)).toBe('');
    const loop = `^(\\.L\\w+):(?:.*\\n)*?\\s(?:${instruction})\\n(?:.*\\n)*?.*\\1$`;
    expect(String(compiled.stdout)).toMatch(new RegExp(loop, 'm'));
  });
}

/** An app as each of several processes has one. */
function appWith(options) {
  const app = express();
  app.use(rateLimit({ ...SMALL, ...options }));
  app.use((_req, res) => res.send('through'));
  return app;
}

async function statusesOf(apps, path = '/') {
  const statuses = [];
  for (const app of apps) statuses.push((await request(app).get(path)).status);
  return statuses;
}

test('two middleware that count one request in one region are told of it', async () => {
  const shared = newName();
  const logger = { warn: jest.fn(), error: jest.fn() };
  const app = express();
  for (const name of [shared, { name: shared }, newName()]) {
    app.use(rateLimit({ ...SMALL, shared: name, limit: 5, logger }));
  }
  app.use((_req, res) => res.send('through'));
  expect(await statusesOf([app])).toEqual([200]);
  const codes = logger.warn.mock.calls.map(([{ code }]) => code);
  expect(codes).toEqual(['ROLLGATE_DOUBLE_COUNT']);
});

describe('rules', () => {
  const rules = [
    { path: '/a', limit: 1 },
    { path: '/b', limit: 3, algorithm: 'gcra' },
    { path: '/c', limit: 1, zone: 'z: ä/{}' },
    { path: '/d', limit: 1, zone: 'z: ä/{}' },
    { path: '/e', limit: 1, perPath: true },
    { path: '/f', limit: 1, blockFor: 30_000, blockEverywhere: true },
    { path: '/g', limit: () => 1 },
  ];

  test('have regions of their own, the same in every process and in any order', async () => {
    const shared = newName();
    const [one, other] = [rules, [...rules].reverse()].map((list) =>
      appWith({ shared, rules: list, windowMs: undefined }),
    );
    expect(await statusesOf([one, other], '/a')).toEqual([200, 429]);
    expect(await statusesOf([one, other, one, other], '/b')).toEqual([200, 200, 200, 429]);
    expect([...(await statusesOf([one], '/c')), ...(await statusesOf([other], '/d'))]).toEqual([
      200, 429,
    ]);
    expect(await statusesOf([one, other], '/e/1')).toEqual([200, 429]);
    expect(await statusesOf([other], '/e/2')).toEqual([200]);
    expect(await statusesOf([one, other], '/g')).toEqual([200, 429]);
    expect(await statusesOf([one, other], '/f')).toEqual([200, 429]);
    expect(await statusesOf([one], '/e/3')).toEqual([429]); // blocked everywhere
    expect(filesOf(shared)).toHaveLength(7);
    for (const file of filesOf(shared)) expect(file).toMatch(/\+[\w-]{16}$/);
  });

  test('are removed with the name that theirs are made of, and those of other names stay', async () => {
    const shared = newName();
    const app = appWith({ shared, rules, windowMs: undefined });
    for (const path of ['/a', '/b', '/c']) await statusesOf([app], path);
    const hash = filesOf(shared)[0].slice(-16);
    const others = ['-foo', `-${hash}`, `.${hash}`, 'x'].map((end) => `${shared}${end}`);
    for (const name of others) RateLimiter({ ...SMALL_LIMITS, shared: name })('a');
    // Neither of these is the file of a region.
    const foreign = [`${shared}+short`, `${shared}+${hash}.bak`].map((name) => {
      return filesOf(shared)[0].replace(/[^/]*$/, `rollgate-${process.geteuid()}-${name}`);
    });
    for (const file of foreign) fs.writeFileSync(file, '');
    try {
      expect(RateLimiter.unlinkShared(shared)).toBe(true);
      expect(RateLimiter.unlinkShared(shared)).toBe(false);
      expect(filesOf(shared)).toEqual(
        [...others.flatMap((name) => filesOf(name)), ...foreign].sort(),
      );
    } finally {
      for (const file of foreign) fs.rmSync(file);
    }
    expect(await statusesOf([appWith({ shared, rules, windowMs: undefined })], '/a')).toEqual([
      200,
    ]);
  });

  test('of a part are removed with it, and one that cannot be keeps no other', async () => {
    const shared = newName();
    const part = partOfRegion(shared, 'route');
    const app = appWith({ shared: part, rules, windowMs: undefined });
    for (const path of ['/a', '/b']) await statusesOf([app], path);
    RateLimiter({ ...SMALL_LIMITS, shared })('a');
    expect(RateLimiter.unlinkShared(part)).toBe(true);
    expect(filesOf(shared)).toHaveLength(1);
    await statusesOf([appWith({ shared: part, rules, windowMs: undefined })], '/a');
    const [own, ofRule] = filesOf(shared);
    const link = `${own}+${'a'.repeat(16)}`;
    fs.symlinkSync(own, link);
    try {
      const error = catchError(() => RateLimiter.unlinkShared(shared));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_FILE' });
      expect([own, ofRule, link].map((file) => fs.existsSync(file))).toEqual([false, false, false]);
      expect(fs.lstatSync(link).isSymbolicLink()).toBe(true);
    } finally {
      fs.rmSync(link);
    }
  });

  test.each([{}, { name: 5 }, 5, null])(
    'are refused where the option is %p, not the name of one',
    (shared) => {
      const error = catchError(() => rateLimit({ rules, shared }));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
      expect(error.message).toMatch(/^rateLimit: option 'shared(\.name)?': expected a name/);
    },
  );

  test('are in the directory of the option, be it inherited', () => {
    class Settings {
      get name() {
        return 'inherited';
      }
      get directory() {
        return '/tmp';
      }
      get maxKeys() {
        return 10;
      }
      get room() {
        return 200;
      }
    }
    expect(partOfRegion(new Settings(), 'zone')).toEqual({
      name: expect.stringMatching(/^inherited[+]/),
      directory: '/tmp',
      maxKeys: 10,
      room: 200,
    });
  });

  test('take names that leave room for those of their regions', () => {
    const list = [{ path: '/', limit: 1 }];
    expect(typeof rateLimit({ rules: list, shared: 'x'.repeat(183) })).toBe('function');
    const error = catchError(() => rateLimit({ rules: list, shared: 'x'.repeat(184) }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(
      /^rateLimit: option 'shared': expected a name of at most 183 characters/,
    );
  });
});

describe('with Fastify', () => {
  const { newApp, serve } = useFastify();

  test('a route may have another store in place of the one of its scope', async () => {
    const [shared, own] = [newName(), newName()];
    const app = newApp();
    app.register(rollgate, { ...SMALL, shared, limit: 2 });
    const rateLimit = { limit: 1, shared: { name: own, maxKeys: 50 } };
    app.get('/own/:name', { config: { rateLimit } }, () => 'through');
    const at = await serve(app);
    const statusOf = async (path) => (await fetch(at + path)).status;
    expect([await statusOf('/own/a'), await statusOf('/own/a')]).toEqual([200, 429]);
    expect([filesOf(shared).length, filesOf(own).length]).toEqual([0, 1]);
  });
});

test('stores of express-rate-limit count together with those of their name, and say so', async () => {
  const shared = newName();
  const stores = [1, 2].map(() => new RollgateStore({ shared, maxKeys: 50 }));
  const apps = stores.map((store) => {
    const app = express();
    app.use(expressRateLimit({ windowMs: 60_000, limit: 2, store }));
    app.use((_req, res) => res.send('through'));
    return app;
  });
  expect(await statusesOf([...apps, ...apps])).toEqual([200, 200, 429, 429]);
  expect(stores.map(({ localKeys }) => localKeys)).toEqual([false, false]);
  expect(stores[0].prefix).toBe(stores[1].prefix);
  const elsewhere = new RollgateStore({ shared: { name: shared, directory: '/tmp' } });
  expect(elsewhere.prefix).not.toBe(stores[0].prefix);
});
