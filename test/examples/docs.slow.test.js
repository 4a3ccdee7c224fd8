// The programs in README and docs print what their pages say.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { blocksOf, ROOT, readPage, typeOf } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');
const { askProgram, runProgram } = require('../support/run-program');
const { emptyFolder, removeFolders } = require('../support/tarball');

/** Names of this process's own, so that no other run counts in the same regions. */
const REGION = `docs-${process.pid}`;
const REGIONS = [REGION, `${REGION}-room`, `${REGION}-jobs`];
const isOnLinux = process.platform === 'linux';

let redis;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => {
  removeFolders();
  for (const region of REGIONS) RateLimiter.unlinkShared(region);
});

async function run(source) {
  const { code, stdout, stderr } = await runProgram(source, { type: typeOf(source) });
  return { status: code, stdout, stderr };
}

/** The same program with this for that, which it must have. */
function exchange(code, that, replacement) {
  expect(code).toContain(that);
  return code.replace(that, replacement);
}

const BUDGETS_BY_HAND = [
  '{ tokens: 7000 }',
  'user',
  'organisation',
  '{ tokens: 8500 }',
  '1 requests, 8500 tokens',
  '15500 of 15000',
  '',
].join('\n');
const BY_HAND = 'ada: one (1 left)\nada: two (0 left)\nada: wait 10 s\nbob: one (1 left)\n';
const ONCE = /^action 1: done\naction 2: done\naction 3: done\nrefused, try again in \d+ ms\n$/;

/** In place of what a program prints: servers.slow.test.js runs it. */
const IS_SERVER = null;

/** What the programs of each page print, in their order. */
const PAGES = {
  'README.md': [IS_SERVER, expect.stringMatching(ONCE)],
  'docs/cheat-sheet.md': ['go\n'],
  'docs/fetch.md': ['200\n200\n429\n', '200\n'],
  'docs/algorithms.md': ['0\n', 'sliding-window-log 100\nfixed-window 200\n', '5000\n1\n60000\n'],
  'docs/faq.md': ['true 2\nfalse 20\n', '3\n2\n', '3600000\n0\n', '', 'function function true\n'],
  'docs/waiting.md': ['first\nsecond\nthird\nfourth\n', '8\n'],
  'docs/observability.md': [
    '',
    '3 [{"limiter":"api","id":"ada","blocked":2,"overcount":0}]\n',
    'ada was refused for 1000 ms\n',
    '',
  ],
  'docs/api.md': [
    'requests: 59, tokens: 6000\n',
    'true 2500\nfalse\n',
    'false\ntrue\nfalse\n',
    'false block true\ntrue\n',
    'true\ntrue\n1\n',
  ],
  'docs/quotas.md': [
    'false 2026-02-28T23:00:00.000Z\n1\n',
    '2026-11-24T15:00:00.000Z\n999\n',
    'true false\n48200\nfalse false\n',
    '115 0\nfalse\n',
  ],
  'docs/budgets.md': [IS_SERVER, BUDGETS_BY_HAND, IS_SERVER, IS_SERVER],
  'docs/concurrency.md': ['', '1\n2\ntrue\n', '', 'exporting\n', ''],
  'docs/middleware.md': Array(8).fill(''),
  'docs/rules.md': [''],
  'docs/fastify.md': ['', '', ''],
  'docs/migration-concurrency.md': ['[ 10, 20, 30 ]\n'],
  'docs/migration-fastify-rate-limit.md': [''],
  'docs/migration-hono-rate-limiter.md': [
    ...Array(2).fill('200\n200\n429\n'),
    '404\n404\n200\n200\n429\n',
  ],
  'docs/migration-limiter.md': [...Array(2).fill('first\nsecond\nthird\n'), 'sent\n'],
  'docs/migration-nestjs-throttler.md': [''],
  'docs/migration-rate-limiter-flexible.md': [
    ...Array(2).fill('done, 1 left\ndone, 0 left\nwait 10 s\n'),
    '7 5\n',
  ],
  'docs/migration-upstash-ratelimit.md': ['', 'true\n'],
  'docs/getting-started.md': [
    ...[IS_SERVER, IS_SERVER, BY_HAND, 'done, 9 left\n', 'first\nsecond\nthird\n'],
    ...['sent\n', '0 0\n1000\n0\n59000\n', 'true 70\nfalse\ntrue\n'],
  ],
  'docs/security.md': ['false\ntrue 1\n', '', 'true 10\nfalse 600\n', 'block\ntrue\n'],
  'docs/shared-memory.md': ['0\n', ''],
  'docs/redis.md': ['go ahead\n', 'node-redis false\n', ...Array(6).fill(''), '0 0\n'],
  'docs/leases.md': ['go ahead\n'],
  'docs/kv.md': ['go ahead\n', 'go ahead\n'],
};

const CHANGES = {
  'docs/concurrency.md': (code) =>
    code.replace("shared: 'jobs', ", isOnLinux ? `shared: '${REGIONS[2]}', ` : ''),
  'docs/shared-memory.md': (code) =>
    code.includes('api-with-room')
      ? exchange(code, 'api-with-room', REGIONS[1])
      : `${exchange(code, "shared: 'api'", `shared: '${REGION}'`)}console.log(timeLeft);\n`,
  'docs/kv.md': (code) =>
    code.replace("'limits.db'", JSON.stringify(path.join(emptyFolder(), 'limits.db'))),
};

/** Pages whose blocks are parts of programs, or run in other tests. */
const OTHERS = ['bundling', 'frameworks', 'recipes', 'runtimes', 'testing'];

test('every program of a page has its line here', () => {
  const names = fs.readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const pages = names.filter((name) => !OTHERS.includes(name.replace('.md', '')));
  const counts = ['README.md', ...pages.map((name) => `docs/${name}`)]
    .map((page) => [page, blocksOf(page).length])
    .filter(([, count]) => count > 0);
  const expected = Object.entries(PAGES).map(([page, prints]) => [page, prints.length]);
  expect(Object.fromEntries(counts)).toEqual(Object.fromEntries(expected));
});

const programs = Object.entries(PAGES).flatMap(([page, prints]) =>
  prints.map((print, i) => [page, i + 1, print]),
);
const printing = programs
  .filter(([, , print]) => print !== IS_SERVER)
  .filter(([page]) => isOnLinux || page !== 'docs/shared-memory.md');

test.each(printing)('%s, program %i', async (page, which, stdout) => {
  const code = blocksOf(page)[which - 1].replace('redis://127.0.0.1:6379', redis.url);
  const isWarning = page === 'docs/security.md' && which === 1;
  const stderr = isWarning ? expect.stringContaining('[ROLLGATE_EVICTED]') : '';
  expect(await run(CHANGES[page]?.(code) ?? code)).toEqual({ status: 0, stdout, stderr });
});

test('two pages show what their programs print', () => {
  expect(blocksOf('docs/getting-started.md', 'text')).toContain(BY_HAND);
  expect(blocksOf('docs/budgets.md', 'text')).toContain(BUDGETS_BY_HAND);
});

test('docs/fastify.md: five failures of an account, or 20 of an address, are the most', async () => {
  const statuses = await askProgram(`${blocksOf('docs/fastify.md').at(-1)}
    const attempt = async (name, password, remoteAddress) => {
      const payload = { name, password };
      return (await app.inject({ method: 'POST', url: '/login', payload, remoteAddress })).statusCode;
    };
    const guess = (name, address) => attempt(name, 'guess', '192.0.2.' + address);
    async function main() {
      const account = [];
      for (let i = 0; i < 6; i++) account.push(await guess('ada', i));
      const owner = await attempt(' ADA', 'correct horse', '192.0.2.9');
      const address = [];
      for (let i = 0; i < 21; i++) address.push(await guess('user' + i, 50));
      for (let i = 0; i < 9; i++) await attempt('eve', 'correct horse', '192.0.2.9');
      const other = await attempt('eve', 'correct horse', '192.0.2.9');
      console.log(JSON.stringify({ account, owner, address, other }));
    }
    main();`);
  expect(statuses).toEqual({
    account: [...Array(5).fill(401), 429],
    owner: 429,
    address: [...Array(20).fill(401), 429],
    other: 200,
  });
});

/** What stands in a page as the difference of two programs: the one before and the one after. */
function diffsOf(page) {
  return blocksOf(page, 'diff').map((diff) => {
    const lines = diff.split('\n');
    const side = (other) =>
      lines.filter((line) => !line.startsWith(other)).map((line) => line.slice(1));
    return { before: side('+').join('\n'), after: side('-').join('\n') };
  });
}

const diffs = ['migration', 'migration-express-rate-limit', 'migration-concurrency'].flatMap(
  (name) => diffsOf(`docs/${name}.md`),
);
const DIFF_OUTPUTS = ['0 1\n', 'false 1\n', '', "[ 'a: done', 'b: done', 'c: done' ]\n"];

test.each(DIFF_OUTPUTS.map((stdout, i) => [i + 1, stdout]))(
  'migration: change %i leaves what is printed',
  async (which, stdout) => {
    const { before, after } = diffs[which - 1];
    const changed = which === 1 ? before.replace("-limiter'", "-limiter-0.1'") : before;
    expect(await run(changed)).toMatchObject({ status: 0, stdout });
    expect(await run(after)).toEqual({ status: 0, stdout, stderr: '' });
    expect(diffs).toHaveLength(DIFF_OUTPUTS.length);
  },
);

// Its blocks are tests, which run among these.
describe('docs/testing.md', () => {
  const { REDIS_URL } = process.env;

  beforeAll(() => {
    process.env.REDIS_URL = redis.url;
  });
  afterAll(() => {
    if (REDIS_URL === undefined) delete process.env.REDIS_URL;
    else process.env.REDIS_URL = REDIS_URL;
  });

  const requireThis = (name) => require(name === 'rollgate' ? ROOT : name);

  describe.each(blocksOf('docs/testing.md').map((code, i) => [i + 1, code]))(
    'block %i',
    (_which, code) => {
      new Function('require', 'jest', code)(requireThis, jest);
    },
  );
});

/** Of an id of a table that is nearly as full as before it grows. */
function bytesOfId(algorithm, { cost = 1, ...limits }) {
  const options = { ...limits, algorithm, countBlocked: false, clock: () => 0 };
  const limiter = new RateLimiter(options);
  for (let i = 0; i < 125_000; i++) limiter.attempt(`user-${i}`, { cost });
  const { bytes, keys } = limiter.stats();
  limiter.close();
  return bytes / keys;
}

test('docs/algorithms.md: an id takes as many bytes as it says', () => {
  const ten = { interval: 60_000, maxInInterval: 10 };
  const columns = [
    ten,
    { ...ten, minDifference: 1 },
    { limits: [ten, { interval: 3_600_000, maxInInterval: 10 }] },
    { ...ten, blockFor: 1000 },
    { ...ten, maxInInterval: 100, cost: 100 },
  ];
  const [, section] = readPage('docs/algorithms.md').split('## What an id costs');
  for (const algorithm of ALGORITHMS) {
    const [, row] = new RegExp(`^\\| \`${algorithm}\` \\| (\\d.*) \\|$`, 'm').exec(section);
    // The table's hashes are random, so that one chunk more or less may be needed.
    const errors = row
      .split(' | ')
      .map((bytes, i) => Math.abs(bytesOfId(algorithm, columns[i]) / bytes - 1));
    expect(errors).toHaveLength(columns.length);
    expect(Math.max(...errors)).toBeLessThan(0.05);
  }
});
