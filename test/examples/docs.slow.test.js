// The code, pictures and figures in README and docs are what a run gives today.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { buildSchema, parse } = require('graphql');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { blocksOf, load, readPage, ROOT, typeOf, withServer } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');
const { askProgram, runProgram } = require('../support/run-program');

let folder;

beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-docs-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

async function run(source) {
  const { code, stdout, stderr } = await runProgram(source, { type: typeOf(source) });
  return { status: code, stdout, stderr };
}

/** A name of this process's own, so that no other run counts in the same region. */
const REGION = `docs-${process.pid}`;
const ROOMY_REGION = `${REGION}-room`;
let server;

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

/** In place of what a program prints: it is a server, with a test of its own. */
const IS_SERVER = null;

/** What the programs of a page print, in their order, and what is changed before they run. */
const PAGES = {
  'README.md': {
    skip: 1, // a server, below
    prints: [
      expect.stringMatching(
        /^action 1: done\naction 2: done\naction 3: done\nrefused, try again in \d+ ms\n$/,
      ),
    ],
  },
  'docs/cheat-sheet.md': { prints: ['go\n'] },
  'docs/fetch.md': { prints: ['200\n200\n429\n', '200\n'] },
  'docs/algorithms.md': {
    prints: ['0\n', 'sliding-window-log 100\nfixed-window 200\n', '5000\n1\n60000\n'],
  },
  'docs/faq.md': {
    prints: ['true 2\nfalse 20\n', '3\n2\n', '3600000\n0\n', '', 'function function true\n'],
  },
  'docs/waiting.md': { prints: ['first\nsecond\nthird\nfourth\n', '8\n'] },
  'docs/observability.md': {
    prints: [
      '',
      '3 [{"limiter":"api","id":"ada","blocked":2,"overcount":0}]\n',
      'ada was refused for 1000 ms\n',
      '',
    ],
  },
  'docs/api.md': {
    prints: [
      'requests: 59, tokens: 6000\n',
      'true 2500\nfalse\n',
      'false\ntrue\nfalse\n',
      'false block true\ntrue\n',
      'true\ntrue\n1\n',
    ],
  },
  'docs/quotas.md': {
    prints: [
      'false 2026-02-28T23:00:00.000Z\n1\n',
      '2026-11-24T15:00:00.000Z\n999\n',
      'true false\n48200\nfalse false\n',
      '115 0\nfalse\n',
    ],
  },
  'docs/budgets.md': {
    prints: [IS_SERVER, BUDGETS_BY_HAND, IS_SERVER, IS_SERVER],
  },
  'docs/concurrency.md': {
    prints: ['', '1\n2\ntrue\n', '', 'exporting\n', ''],
    change: (code) =>
      code
        .replace('redis://127.0.0.1:6379', server.url)
        .replace("shared: 'jobs', ", process.platform === 'linux' ? `shared: '${REGION}', ` : ''),
  },
  'docs/middleware.md': { prints: Array(8).fill('') },
  'docs/rules.md': { prints: [''] },
  'docs/fastify.md': { prints: ['', '', ''] },
  'docs/migration-concurrency.md': { prints: ['[ 10, 20, 30 ]\n'] },
  'docs/migration-fastify-rate-limit.md': { prints: [''] },
  'docs/migration-hono-rate-limiter.md': {
    prints: [...Array(2).fill('200\n200\n429\n'), '404\n404\n200\n200\n429\n'],
  },
  'docs/migration-limiter.md': {
    prints: [...Array(2).fill('first\nsecond\nthird\n'), 'sent\n'],
  },
  'docs/migration-nestjs-throttler.md': { prints: [''] },
  'docs/migration-rate-limiter-flexible.md': {
    prints: [...Array(2).fill('done, 1 left\ndone, 0 left\nwait 10 s\n'), '7 5\n'],
  },
  'docs/migration-upstash-ratelimit.md': {
    prints: ['', 'true\n'],
    change: (code) => code.replace('redis://127.0.0.1:6379', server.url),
  },
  'docs/getting-started.md': {
    skip: 1, // a server, below
    prints: [
      IS_SERVER,
      BY_HAND,
      'done, 9 left\n',
      'first\nsecond\nthird\n',
      'sent\n',
      '0 0\n1000\n0\n59000\n',
      'true 70\nfalse\ntrue\n',
    ],
    change: (code) => code.replace('redis://127.0.0.1:6379', server.url),
  },
  'docs/security.md': {
    prints: ['false\ntrue 1\n', '', 'true 10\nfalse 600\n', 'block\ntrue\n'],
    warns: [expect.stringContaining('[ROLLGATE_EVICTED]')],
  },
  'docs/shared-memory.md': {
    prints: process.platform === 'linux' ? ['0\n', ''] : [],
    change: (code) =>
      code.includes('api-with-room')
        ? exchange(code, 'api-with-room', ROOMY_REGION)
        : `${exchange(code, "shared: 'api'", `shared: '${REGION}'`)}console.log(timeLeft);\n`,
  },
  'docs/redis.md': {
    prints: ['go ahead\n', 'node-redis false\n', '', '', '', '', '', '', '0 0\n'],
    change: (code) => code.replace('redis://127.0.0.1:6379', server.url),
  },
  'docs/leases.md': {
    prints: ['go ahead\n'],
    change: (code) => code.replace('redis://127.0.0.1:6379', server.url),
  },
  'docs/kv.md': {
    prints: ['go ahead\n', 'go ahead\n'],
    change: (code) => code.replace("'limits.db'", JSON.stringify(path.join(folder, 'limits.db'))),
  },
};

const WITH_REDIS = [
  'docs/redis.md',
  'docs/concurrency.md',
  'docs/getting-started.md',
  'docs/migration-upstash-ratelimit.md',
];

/** Pages whose blocks are parts of programs, or run in other tests. */
const OTHERS = ['bundling', 'frameworks', 'recipes', 'runtimes', 'testing'];

test('every page with programs is one of these', () => {
  const names = fs.readdirSync(path.join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  const withPrograms = names
    .filter((name) => !OTHERS.includes(name.replace('.md', '')))
    .map((name) => `docs/${name}`)
    .filter((page) => blocksOf(page).length > 0);
  expect(withPrograms.filter((page) => !(page in PAGES))).toEqual([]);
});

describe.each(Object.entries(PAGES))('%s', (page, all) => {
  const { prints, warns = [], skip = 0, change = (code) => code } = all;
  const programs = blocksOf(page).slice(skip);

  beforeAll(async () => {
    if (WITH_REDIS.includes(page)) server = await startRedis();
  });
  afterAll(() => {
    for (const region of [REGION, ROOMY_REGION]) RateLimiter.unlinkShared(region);
  });

  const numbered = prints.map((text, i) => [i + 1 + skip, text]);
  const printing = numbered.filter(([, text]) => text !== IS_SERVER);

  test.each(printing)('program %i', async (which, stdout) => {
    const i = which - 1 - skip;
    const stderr = warns[i] ?? '';
    expect(await run(change(programs[i]))).toEqual({ status: 0, stdout, stderr });
  });

  test('has no other programs', () => {
    if (process.platform === 'linux') expect(programs).toHaveLength(prints.length);
  });
});

test('README.md: the Express application limits and sends its headers', async () => {
  const [express] = blocksOf('README.md');
  const [first, second] = await withServer(express, async (get) => [await get(), await get()]);
  expect(first).toMatchObject({ status: 200, text: '99 more in this minute\n' });
  expect(second).toMatchObject({ status: 200, text: '98 more in this minute\n' });
  expect(second.headers.get('ratelimit')).toBe('"100-in-1min"; r=98; t=60');
});

test('docs/getting-started.md: the fourth request to the limited route is refused', async () => {
  const [server] = blocksOf('docs/getting-started.md');
  const answers = await withServer(server, async (get) => {
    const limited = [];
    for (let i = 0; i < 4; i++) limited.push(await get('api'));
    return [...limited, await get()];
  });
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 200]);
  expect(answers.slice(0, 3).map(({ text }) => text)).toEqual(['2 left\n', '1 left\n', '0 left\n']);
  expect(answers[3].headers.get('retry-after')).toMatch(/^(59|60)$/);
  expect(answers[4].text).toBe('As often as you like.\n');
});

test('docs/getting-started.md: users, visitors and failed logins have their own counts', async () => {
  const [, server] = blocksOf('docs/getting-started.md');
  await withServer(server, async (get) => {
    const times = async (count, ...request) => {
      const answers = [];
      for (let i = 0; i < count; i++) answers.push(await get(...request));
      return answers;
    };
    const ada = { headers: { 'x-api-key': 'key-of-ada' } };
    const from = (address) => ({ headers: { 'x-forwarded-for': address } });
    const visitor = await times(6, '', from('192.0.2.1'));
    expect(visitor.map(({ text }) => text)).toEqual([
      ...[4, 3, 2, 1, 0].map((left) => `${left} left\n`),
      '{"error":"too many requests"}',
    ]);
    expect(visitor[5].headers.get('ratelimit')).toContain('"100-in-1day"; r=95');
    const others = [ada, from('192.0.2.2')].map((request) => get('', request));
    expect((await Promise.all(others)).map(({ text }) => text)).toEqual(['4 left\n', '4 left\n']);
    expect((await get('health', from('192.0.2.1'))).status).toBe(200);
    const logins = await times(6, 'login', { method: 'POST', ...from('192.0.2.1') });
    expect(logins.map(({ status }) => status)).toEqual([...Array(5).fill(401), 429]);
  });
});

test('docs/getting-started.md says what its limiter by hand prints', () => {
  expect(readPage('docs/getting-started.md')).toContain(`\`\`\`text\n${BY_HAND}\`\`\``);
});

describe('docs/budgets.md', () => {
  const servers = blocksOf('docs/budgets.md');

  const post = (path, json, headers) => [
    path,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(json),
    },
  ];

  test('says what its program by hand prints', () => {
    expect(readPage('docs/budgets.md')).toContain(`\`\`\`text\n${BUDGETS_BY_HAND}\`\`\``);
  });

  test('a user gets back the tokens that a request did not use', async () => {
    await withServer(servers[0], async (ask) => {
      const chat = (maxTokens, user = 'ada') =>
        ask(...post('chat', { prompt: 'hi', maxTokens }, { 'x-user': user }));
      const first = await chat(9000);
      expect(first).toMatchObject({ status: 200, text: 'You said: hi' });
      expect(first.headers.get('ratelimit')).toContain(
        '"requests"; r=19; t=60, "tokens"; r=998; t=60',
      );
      expect(first.headers.get('ratelimit-policy')).toContain('"tokens"; q=10000; w=60; pk=');
      expect((await chat(9800)).status).toBe(200);
      const refusal = await chat(9900);
      expect([refusal.status, refusal.headers.get('retry-after')]).toEqual([
        429,
        expect.stringMatching(/^(5\d|60)$/),
      ]);
      const tooLarge = await chat(10_000);
      expect([tooLarge.status, tooLarge.headers.get('retry-after')]).toEqual([429, null]);
      expect((await chat(9900, 'bob')).status).toBe(200);
      expect((await chat('many')).status).toBe(500);
    });
  });

  test('a user and an organisation are limited together', async () => {
    await withServer(servers[2], async (ask) => {
      const chat = (user) => ask(...post('chat', {}, { 'x-user': user, 'x-organisation': 'acme' }));
      const statuses = [];
      for (const user of ['ada', 'ada', 'ada', 'bob', 'bob', 'bob']) {
        statuses.push((await chat(user)).status);
      }
      expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    });
  });

  test('a query costs what it may return', async () => {
    await withServer(servers[3], async (ask) => {
      const query = async (text) => (await ask(...post('graphql', { query: text }))).status;
      expect(await query('{ me { friends(first: 30) { name posts(first: 10) { title } } } }')).toBe(
        200,
      );
      const withUnknownSize =
        'query($n: Int) { me { friends(first: 30) { posts(first: $n) { title } } } }';
      expect(await query(withUnknownSize)).toBe(429);
      expect(await query('{ me { name } }')).toBe(200);
      expect(await query('{ me')).toBe(200); // the server answers it with an error
      expect(
        await query('fragment F on User { friends(first :2000) { name } } { me { ...F } }'),
      ).toBe(429);
      expect(await query('{ me { friends(first: 2000) { name } } }')).toBe(429);
    });
  });

  describe('the complexity of a query', () => {
    const { complexityOf, schema } = load(servers[3], 'complexityOf, schema');
    const costOf = (query, variableValues, operationName) =>
      complexityOf({ schema, document: parse(query), variableValues, operationName });

    test.each([
      ['{ me { name } }', 2],
      ['{ me { friends(first: 50) { name } } }', 52],
      ['{ me { friends(last: 50) { name posts(first: 2) { title } } } }', 1 + 1 + 50 * (1 + 1 + 2)],
      ['{ me { friends(first: 10, last: 20) { name } } }', 22],
      ['{ me { friends { name } } }', 102],
      ['{ me { friends(first: null) { name } } }', 102],
      ['{ me { friends(first: 0) { name } } }', 102],
      ['{ me { friends(first: -1) { name } } }', 102],
      ['{ me { ...f ...f } } fragment f on User { friends(first: 10) { name } }', 1 + 2 * 11],
      ['{ me { ... on User { friends(first: 10) { ... { name } } } } }', 12],
      ['{ me { a: friends(first: 10) { name } b: friends(first: 10) { name } } }', 23],
      ['{ me { name friends @skip(if: true) { name } } }', 2],
      ['{ me @skip(if: true) { name } }', 1],
      ['{ __schema { types { fields { name } } } }', 4],
    ])('%s is %d', (query, cost) => {
      expect(costOf(query)).toBe(cost);
    });

    test('has variables as what they are, else as their default, else as the longest list', () => {
      const query = 'query($n: Int) { me { friends(first: $n) { name } } }';
      const withDefault = 'query($n: Int = 7) { me { friends(first: $n) { name } } }';
      expect(costOf(query, { n: 30 })).toBe(32);
      expect([costOf(withDefault), costOf(withDefault, { n: 30 })]).toEqual([9, 32]);
      expect([costOf(query), costOf(query, { n: null }), costOf(query, { n: -5 })]).toEqual([
        102, 102, 102,
      ]);
    });

    test('has sizes of any type as numbers, and is an integer', () => {
      const schema = buildSchema('scalar Any type Query { a(first: Any): [Query], b: Int }');
      const costOf = (first) =>
        complexityOf({ schema, document: parse(`{ a(first: ${first}) { b } }`) });
      expect(['5000', '"5000"', '1.5', '"many"', '[]'].map(costOf)).toEqual([
        5001, 5001, 3, 101, 101,
      ]);
    });

    test('is that of the operation that is executed', () => {
      const query =
        'query a { me { name } } query b($n: Int!) { me { friends(first: $n) { name } } }';
      expect(costOf(query, {}, 'a')).toBe(2);
      expect(costOf(query, { n: 3 }, 'b')).toBe(5);
      expect(costOf('{ me { name } }', {}, 'unknown')).toBe(2); // which no server executes
    });

    test('is never above the largest cost', () => {
      const huge = (depth) =>
        `${'{ friends(first: 2147483647) '.repeat(depth)} { name } ${'}'.repeat(depth)}`;
      for (const depth of [3, 60]) {
        expect(costOf(`{ me ${huge(depth)} }`)).toBe(Number.MAX_SAFE_INTEGER);
      }
    });

    test('is an error for wrong variables and for too many fields', () => {
      const query = 'query($n: Int!) { me { friends(first: $n) { name } } }';
      expect(() => costOf(query, { n: 'many' })).toThrow(/Variable "\$n" got invalid value "many"/);
      const fragments = Array.from({ length: 60 }, (_, i) => {
        return `fragment f${i} on Query { ${i < 59 ? `...f${i + 1} ...f${i + 1}` : 'me { name }'} }`;
      });
      expect(() => costOf(`{ ...f0 } ${fragments.join(' ')}`)).toThrow(
        /maximum .* number of nodes/,
      );
    });

    test('is computed by the same functions as in the example for GraphQL Yoga', () => {
      const example = readPage('examples/frameworks/graphql-yoga.js');
      const [functions] = /^const LONGEST_LIST.*?(?=^const limit)/ms.exec(example);
      expect(servers[3]).toContain(functions);
    });
  });

  test('what must not be executed is answered with its error', async () => {
    await withServer(servers[3], async (ask) => {
      const errorOf = async (json) => {
        const { status, text } = await ask(...post('graphql', json));
        const { data, errors } = JSON.parse(text);
        expect([status, data, errors]).toEqual([200, undefined, [expect.anything()]]);
        return errors[0].message;
      };
      const cycle = 'fragment f on User { ...g } fragment g on User { friends { ...f } }';
      expect(await errorOf({})).toContain('Syntax Error');
      expect(await errorOf({ query: `{ me { ...f } } ${cycle}` })).toContain('within itself');
      expect(await errorOf({ query: `{ me ${'{ a '.repeat(1000)}` })).toContain('2000 tokens');
      const variables = { n: 'many' };
      const query = 'query($n: Int) { me { friends(first: $n) { name } } }';
      expect(await errorOf({ query, variables })).toContain('invalid value "many"');
      const operationName = 'unknown';
      expect(await errorOf({ query: '{ me { name } }', operationName })).toContain('unknown');
    });
  });
});

test('docs/fastify.md: five failures of an account, or 20 of an address, are the most', async () => {
  const login = blocksOf('docs/fastify.md').at(-1);
  const statuses = await askProgram(`${login}
    const attempt = async (name, password, remoteAddress) => {
      const payload = { name, password };
      const request = { method: 'POST', url: '/login', payload, remoteAddress };
      return (await app.inject(request)).statusCode;
    };
    const inTurn = async (count, attemptOf) => {
      const statuses = [];
      for (let i = 0; i < count; i++) statuses.push(await attemptOf(i));
      return statuses;
    };
    async function main() {
      console.log(JSON.stringify({
        account: await inTurn(6, (i) => attempt('ada', 'guess', '192.0.2.' + i)),
        owner: await attempt(' ADA', 'correct horse', '192.0.2.9'),
        successes: await inTurn(9, () => attempt('eve', 'correct horse', '192.0.2.9')),
        address: await inTurn(21, (i) => attempt('user' + i, 'guess', '192.0.2.50')),
      }));
    }
    main();`);
  expect(statuses).toEqual({
    account: [...Array(5).fill(401), 429],
    owner: 429,
    successes: Array(9).fill(200),
    address: [...Array(20).fill(401), 429],
  });
});

/** What stands in a page as the difference of two programs: the one before and the one after. */
function diffsOf(page) {
  return [...readPage(page).matchAll(/^```diff\n(.*?)^```$/gms)].map(([, diff]) => {
    const lines = diff.split('\n');
    const side = (other) =>
      lines.filter((line) => !line.startsWith(other)).map((line) => line.slice(1));
    return { before: side('+').join('\n'), after: side('-').join('\n') };
  });
}

const diffs = ['migration', 'migration-express-rate-limit', 'migration-concurrency'].flatMap(
  (name) => diffsOf(`docs/${name}.md`),
);
const UPLOADED = "[ 'a: done', 'b: done', 'c: done' ]\n";
const diffOutputs = ['0 1\n', 'false 1\n', '', UPLOADED];

test('the pages of migration have four changes', () => {
  expect(diffs).toHaveLength(diffOutputs.length);
});

test.each(diffs.map((diff, i) => [i + 1, diff]))(
  'migration: change %i leaves what is printed',
  async (which, { before, after }) => {
    const stdout = diffOutputs[which - 1];
    const changed = which === 1 ? before.replace("-limiter'", "-limiter-0.1'") : before;
    expect(await run(changed)).toMatchObject({ status: 0, stdout });
    expect(await run(after)).toEqual({ status: 0, stdout, stderr: '' });
  },
);

// Its blocks are tests, which run among these.
describe('docs/testing.md', () => {
  const { REDIS_URL } = process.env;

  beforeAll(async () => {
    process.env.REDIS_URL = (await startRedis()).url;
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

const algorithms = readPage('docs/algorithms.md');
const images = path.join(ROOT, 'docs/images');
const names = ALGORITHMS.map((algorithm) => `${algorithm}.svg`);

/** What a script prints, as lines. */
function linesOf(script, ...args) {
  const file = path.join(ROOT, 'scripts', script);
  return execFileSync(process.execPath, [file, ...args], { encoding: 'utf8' })
    .trim()
    .split('\n');
}

/** The cells of a row of a table. */
const cellsOf = (row) =>
  row
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());

/** The rows of the page's table below a heading, its own two lines of heading left out. */
function rowsBelow(heading) {
  const section = algorithms.split(/^## /m).find((text) => text.startsWith(heading));
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map(cellsOf);
}

describe('docs/algorithms.md, the pictures', () => {
  let drawn;

  beforeAll(() => {
    drawn = path.join(folder, 'images');
    fs.mkdirSync(drawn);
    linesOf('draw-algorithms.mjs', drawn);
  });

  test.each(names)('%s is what a run gives today', (name) => {
    const read = (folder) => fs.readFileSync(path.join(folder, name), 'utf8');
    expect(read(images)).toBe(read(drawn));
  });

  test.each(names)('%s shows the burst that the page names', (name) => {
    const svg = fs.readFileSync(path.join(images, name), 'utf8');
    const [, most] = /at most (\d+) within any 10 s\.<\/desc>/.exec(svg);
    const [, alt] = new RegExp(`!\\[(.+)\\]\\(images/${name}\\)`).exec(algorithms);
    expect(alt).toMatch(new RegExp(`(more than|up to) ${most} through within`));
  });
});

test('docs/algorithms.md: the worst bursts and waits of the page are those that the search finds', () => {
  const found = linesOf('measure-algorithms.mjs', 'bursts').map(cellsOf);
  expect(found).toHaveLength(ALGORITHMS.length);
  expect(rowsBelow('What each lets through')).toEqual(found);
});

test('docs/algorithms.md: an id takes as many bytes as it says', () => {
  const measured = linesOf('measure-algorithms.mjs', 'memory').map(cellsOf);
  const written = rowsBelow('What an id costs');
  expect(written.map(([name]) => name)).toEqual(measured.map(([name]) => name));
  // The table's hashes are random, so that one chunk more or less may be needed.
  written.forEach(([, ...bytes], i) => {
    bytes.forEach((count, j) => {
      const ratio = Number(count) / Number(measured[i][j + 1]);
      expect(ratio).toBeGreaterThan(0.95);
      expect(ratio).toBeLessThan(1.05);
    });
  });
});
