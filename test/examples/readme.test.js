// The code in README and docs, run as it stands there.
'use strict';

const fs = require('node:fs');
const { mkdtemp, rm } = require('node:fs/promises');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const RateLimiter = require('../../lib');
const { startRedis } = require('../support/redis-server');

const root = path.join(__dirname, '../..');

/** The js blocks of a page. */
function blocksOf(page) {
  const text = fs.readFileSync(path.join(root, page), 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);
}

/** Runs a program in the package's own folder, so that it finds 'rollgate' by name. */
function start(code) {
  const type = /^import /m.test(code) ? 'module' : 'commonjs';
  const child = spawn(process.execPath, [`--input-type=${type}`, '-e', code], { cwd: root });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  return { child, output };
}

async function run(code) {
  const { child, output } = start(code);
  const [status] = await once(child, 'close');
  return { status, ...output };
}

/** A server of the page on a port that is free; `ask(get)` makes the requests, `get(path)` one. */
async function withServer(code, ask) {
  expect(code).toContain("listen(3000, '127.0.0.1')");
  const told = code.replace(
    /app\.listen\(3000, '127\.0\.0\.1'\);/,
    "const s = app.listen(0, '127.0.0.1', () => console.log(s.address().port));",
  );
  const { child, output } = start(told);
  try {
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')]);
    expect(output.stderr).toBe('');
    const url = `http://127.0.0.1:${Number(output.stdout)}/`;
    return await ask(async (page = '') => {
      const answer = await fetch(url + page);
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    });
  } finally {
    child.kill();
  }
}

const [express, inMemory, ...more] = blocksOf('README.md');

test('README has the two programs that are run here', () => {
  expect(inMemory).toBeDefined();
  expect(more).toEqual([]);
});

test('README: the fourth action within a second is refused', async () => {
  const { status, stdout, stderr } = await run(inMemory);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toMatch(
    /^action 1: done\naction 2: done\naction 3: done\nrefused, try again in \d+ ms\n$/,
  );
});

test('README: the Express application limits and sends its headers', async () => {
  const [first, second] = await withServer(express, async (get) => [await get(), await get()]);
  expect(first).toMatchObject({ status: 200, text: '99 more in this minute\n' });
  expect(second).toMatchObject({ status: 200, text: '98 more in this minute\n' });
  expect(second.headers.get('ratelimit-remaining')).toBe('98');
});

/** What the programs of a page print, in their order. */
const OUTPUTS = {
  'docs/algorithms.md': ['0\n', 'sliding-window-log 100\nfixed-window 200\n', '5000\n1\n60000\n'],
  'docs/faq.md': ['true 2\nfalse 20\n', '3\n2\n', '3600000\n0\n', '', 'function function true\n'],
  'docs/waiting.md': ['first\nsecond\nthird\nfourth\n', '8\n'],
  'docs/observability.md': [
    '',
    '3 [{"limiter":"api","id":"ada","blocked":2,"overcount":0}]\n',
    'ada was refused for 1000 ms\n',
  ],
  'docs/middleware.md': ['', '', '', ''],
  'docs/rules.md': [''],
  'docs/fastify.md': [''],
  'docs/migration.md': [...Array(2).fill('done, 1 left\ndone, 0 left\nwait 10 s\n'), '7 5\n'],
};

describe.each(Object.entries(OUTPUTS))('%s', (page, outputs) => {
  const programs = blocksOf(page).map((code, i) => [i + 1, code]);

  test.each(programs)('program %i prints what the page says', async (which, code) => {
    expect(await run(code)).toEqual({ status: 0, stdout: outputs[which - 1], stderr: '' });
  });

  test('has no other programs', () => {
    expect(programs).toHaveLength(outputs.length);
  });
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

const gettingStartedOutputs = [
  'ada: one (1 left)\nada: two (0 left)\nada: wait 10 s\nbob: one (1 left)\n',
  'done, 9 left\n',
  '0 0\n1000\n0\n59000\n',
  'true 70\nfalse\ntrue\n',
];

test.each(
  blocksOf('docs/getting-started.md')
    .slice(1)
    .map((code, i) => [i + 2, code]),
)('docs/getting-started.md: program %i prints what it says', async (which, code) => {
  const stdout = gettingStartedOutputs[which - 2];
  expect(await run(code)).toEqual({ status: 0, stdout, stderr: '' });
});

test('docs/getting-started.md says what its limiter by hand prints', () => {
  const text = fs.readFileSync(path.join(root, 'docs/getting-started.md'), 'utf8');
  expect(text).toContain(`\`\`\`text\n${gettingStartedOutputs[0]}\`\`\``);
});

const describeOnLinux = process.platform === 'linux' ? describe : describe.skip;

describeOnLinux('docs/shared-memory.md', () => {
  // A name of this process's own, so that no other run counts in the same region.
  const name = `docs-${process.pid}`;

  afterAll(() => RateLimiter.unlinkShared(name));

  test.each(blocksOf('docs/shared-memory.md').map((code, i) => [i + 1, code]))(
    'program %i runs',
    async (_which, code) => {
      expect(code).toContain("shared: 'api'");
      const told = code.replace("shared: 'api'", `shared: '${name}'`);
      const printed = `${told}console.log(timeLeft);\n`;
      expect(await run(printed)).toEqual({ status: 0, stdout: '0\n', stderr: '' });
    },
  );
});

describe('docs/redis.md, on a real server', () => {
  let server;

  beforeAll(async () => {
    server = await startRedis();
  });

  const outputs = [/^go ahead\n$/, /^node-redis false\n$/, /^$/];

  test.each(blocksOf('docs/redis.md').map((code, i) => [i + 1, code]))(
    'program %i runs',
    async (which, code) => {
      expect(code).toContain('redis://127.0.0.1:6379');
      const told = code.replace('redis://127.0.0.1:6379', server.url);
      const { status, stdout, stderr } = await run(told);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(outputs[which - 1]);
    },
  );
});

describe('docs/kv.md', () => {
  let folder;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'rollgate-docs-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test.each(blocksOf('docs/kv.md').map((code, i) => [i + 1, code]))(
    'program %i runs',
    async (_which, code) => {
      const told = code.replace("'limits.db'", JSON.stringify(path.join(folder, 'limits.db')));
      expect(await run(told)).toEqual({ status: 0, stdout: 'go ahead\n', stderr: '' });
    },
  );
});

/** What stands in a page as the difference of two programs: the one before and the one after. */
function diffsOf(page) {
  const text = fs.readFileSync(path.join(root, page), 'utf8');
  return [...text.matchAll(/^```diff\n(.*?)^```$/gms)].map(([, diff]) => {
    const lines = diff.split('\n');
    const side = (other) =>
      lines.filter((line) => !line.startsWith(other)).map((line) => line.slice(1));
    return { before: side('+').join('\n'), after: side('-').join('\n') };
  });
}

const diffOutputs = ['0 1\n', 'false 1\n', ''];

test.each(diffsOf('docs/migration.md').map((diff, i) => [i + 1, diff]))(
  'docs/migration.md: change %i leaves what is printed',
  async (which, { before, after }) => {
    const stdout = diffOutputs[which - 1];
    const told = which === 1 ? before.replace("-limiter'", "-limiter-0.1'") : before;
    expect(await run(told)).toMatchObject({ status: 0, stdout });
    expect(await run(after)).toEqual({ status: 0, stdout, stderr: '' });
  },
);

const securityOutputs = ['false\ntrue 1\n', '', 'true 10\nfalse 600\n', 'block\ntrue\n'];

test.each(blocksOf('docs/security.md').map((code, i) => [i + 1, code]))(
  'docs/security.md: program %i prints what it says',
  async (which, code) => {
    const stderr = which === 1 ? expect.stringContaining('[ROLLGATE_EVICTED]') : '';
    expect(await run(code)).toEqual({ status: 0, stdout: securityOutputs[which - 1], stderr });
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

  const requireThis = (name) => require(name === 'rollgate' ? root : name);

  describe.each(blocksOf('docs/testing.md').map((code, i) => [i + 1, code]))(
    'block %i',
    (_which, code) => {
      new Function('require', 'jest', code)(requireThis, jest);
    },
  );
});

test('docs/errors.md has a section for every code, and for no other', () => {
  const text = fs.readFileSync(path.join(root, 'docs/errors.md'), 'utf8');
  const documented = [...text.matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  const files = fs.readdirSync(path.join(root, 'lib'), { recursive: true });
  const used = new Set();
  const environment = new Set(['ROLLGATE_ADDON', 'ROLLGATE_PREBUILD']);
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    const code = fs.readFileSync(path.join(root, 'lib', file), 'utf8');
    for (const [, name] of code.matchAll(/'((?:ERR_)?ROLLGATE_[A-Z_]+)'/g)) {
      if (!environment.has(name)) used.add(name);
    }
  }
  expect(documented.sort()).toEqual([...used].sort());
});
