// Which of the two is chosen, what is said about it, and what is wrong with the file of the module.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { WASM_FILE, addonBinding } = require('../support/bindings');
const { askProgram } = require('../support/run-program');

const ROOT = path.join(__dirname, '../..');
const LIMITS = { interval: 60_000, maxInInterval: 1 };

let folder;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'rollgate wasm-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

let made = 0;
/** An installed package without an addon; `change(file)` is done to its module. */
function installed(change = () => {}) {
  const app = path.join(folder, String(++made));
  const rollgate = path.join(app, 'node_modules/rollgate');
  for (const part of ['lib', 'package.json']) {
    fs.cpSync(path.join(ROOT, part), path.join(rollgate, part), { recursive: true });
  }
  const dependency = 'node_modules/node-gyp-build';
  fs.cpSync(path.join(ROOT, dependency), path.join(app, dependency), { recursive: true });
  change(path.join(rollgate, 'lib/native/wasm/rollgate.wasm'));
  return rollgate;
}

const NO_CHOICE = { ROLLGATE_BINDING: '', ROLLGATE_ADDON: '', ROLLGATE_PREBUILD: '' };

/** What a program prints as JSON that has the package at `place`; its warnings come in \`warnings\`. */
function ask(place, program, { env = {}, flags = [] } = {}) {
  const source = `
    const warnings = [];
    process.on('warning', ({ name, code, detail }) => warnings.push({ name, code, detail }));
    const rollgate = require(${JSON.stringify(place)});
    const { RateLimiter } = rollgate;
    const LIMITS = ${JSON.stringify(LIMITS)};
    const errorOf = (call) => {
      try { call(); } catch ({ name, code, message, cause }) {
        return { name, code, message, cause: cause && { code: cause.code, name: cause.name } };
      }
    };
    const print = (value) => setImmediate(() => console.log(JSON.stringify(value())));
    ${program}
  `;
  return askProgram(source, { env: { ...NO_CHOICE, NODE_NO_WARNINGS: '1', ...env }, flags });
}

/** A module of WebAssembly with a memory and a function that rollgate's has. */
const OTHER_MODULE = Uint8Array.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0], // the version
  ...[1, 5, 1, 0x60, 0, 1, 0x7f], // a type: () -> i32
  ...[3, 2, 1, 0], // a function of it
  ...[5, 3, 1, 0, 1], // a memory
  ...[7, 20, 2, 6, ...Buffer.from('memory'), 2, 0, 7, ...Buffer.from('numbers'), 0, 0], // exports
  ...[10, 6, 1, 4, 0, 0x41, 0, 0x0b], // the function returns 0
]);

describe('without the addon', () => {
  test('one warning says why, however many limiters there are, and setAddonPath comes too late', async () => {
    const place = installed();
    const found = await ask(
      place,
      `
      const limiters = Array.from({ length: 20 }, () => RateLimiter(LIMITS));
      const waits = limiters.map((limiter) => [limiter('a'), limiter('a') > 0]);
      rollgate.rateLimit({ limit: 1 });
      const late = errorOf(() => rollgate.setAddonPath('/none.node'));
      print(() => ({ waits, warnings, late }));
      `,
    );
    expect(found.waits).toEqual(Array(20).fill([0, true]));
    expect(found.warnings).toEqual([
      {
        name: 'RollgateWarning',
        code: 'ROLLGATE_WASM',
        detail: expect.stringContaining(`- ${place}: No native build was found`),
      },
    ]);
    expect(found.late.code).toBe('ERR_ROLLGATE_ADDON');
    expect(found.late.message).toContain('rollgate runs as WebAssembly already');
  });

  test('what needs it is refused, with the alternative', async () => {
    const { errors } = await ask(
      installed(),
      `
      const redis = { redis: 'redis://127.0.0.1:1', namespace: 'n' };
      const calls = [
        () => RateLimiter({ ...LIMITS, shared: 'name' }),
        () => rollgate.unlinkShared('name'),
        () => RateLimiter({ ...LIMITS, ...redis }),
        () => rollgate.createRedisConnection('redis://127.0.0.1:1'),
      ];
      print(() => ({ errors: calls.map(errorOf) }));
      `,
      { env: { ROLLGATE_BINDING: 'wasm' } },
    );
    expect(errors.map(({ code }) => code)).toEqual(Array(4).fill('ERR_ROLLGATE_UNSUPPORTED'));
    const [shared, unlinked, redis, connection] = errors.map(({ message }) => message);
    for (const message of [shared, unlinked])
      expect(message).toMatch(/WebAssembly here; take 'kv'/);
    for (const message of [redis, connection])
      expect(message).toMatch(/client of ioredis or redis/);
  });

  // Kills: a refusal of every limiter on Redis.
  test('a client of Redis is asked', async () => {
    const { type, waits } = await ask(
      installed(),
      `
      const answers = [[0], [7000]];
      const client = { isOpen: true, sendCommand: async () => answers.shift() };
      const limiter = RateLimiter({ ...LIMITS, redis: client, namespace: 'n' });
      (async () => {
        const waits = [await limiter('a'), await limiter('a')];
        print(() => ({ type: limiter.detectedClientType, waits }));
      })();
      `,
      { env: { ROLLGATE_BINDING: 'wasm' } },
    );
    expect([type, waits]).toEqual(['node-redis', [0, 7]]);
  });

  test.each([
    [
      'a variable',
      { ROLLGATE_ADDON: '/none/rollgate.node' },
      '',
      '(ROLLGATE_ADDON): does not exist',
    ],
    [
      'a call',
      {},
      "rollgate.setAddonPath('/none/rollgate.node');",
      '(setAddonPath): does not exist',
    ],
    ['a choice of it', { ROLLGATE_BINDING: 'native' }, '', 'No native build was found'],
  ])('a wrong path or a missing addon stays an error with %s', async (_, env, call, message) => {
    const { error, warnings } = await ask(
      installed(),
      `${call} print(() => ({ error: errorOf(() => RateLimiter(LIMITS)), warnings }));`,
      { env },
    );
    expect(error.code).toBe('ERR_ROLLGATE_ADDON');
    expect(error.message).toContain(message);
    expect(warnings).toEqual([]);
  });
});

describe('ROLLGATE_BINDING', () => {
  test('wasm chooses the module, without a warning, also with a wrong path of the addon', async () => {
    for (const ROLLGATE_ADDON of ['', '/none/rollgate.node']) {
      const found = await ask(
        ROOT,
        "const wait = RateLimiter(LIMITS)('a'); print(() => ({ wait, warnings, isWasm: require('./lib/native').loadBinding().isWasm }));",
        { env: { ROLLGATE_BINDING: 'wasm', ROLLGATE_ADDON } },
      );
      expect(found).toEqual({ wait: 0, warnings: [], isWasm: true });
    }
  });

  test('refuses what is neither', async () => {
    const ROLLGATE_BINDING = ' wasm';
    const { errors } = await ask(
      ROOT,
      'print(() => ({ errors: [1, 2].map(() => errorOf(() => RateLimiter(LIMITS))) }));',
      { env: { ROLLGATE_BINDING } },
    );
    const shown = `expected 'native' or 'wasm', got "${ROLLGATE_BINDING}" (string)`;
    const error = { name: 'Error', code: 'ERR_ROLLGATE_ADDON' };
    const message = `environment variable ROLLGATE_BINDING: ${shown}`;
    expect(errors).toEqual([expect.objectContaining({ ...error, message }), errors[0]]);
  });
});

const IN_FORCE = 'print(() => ({ error: errorOf(() => RateLimiter(LIMITS)), warnings }));';

describe('a module that cannot be used', () => {
  const whole = fs.readFileSync(WASM_FILE);
  const cut = (bytes) => (file) => fs.writeFileSync(file, whole.subarray(0, bytes));
  const unreadable = (file) => {
    fs.rmSync(file);
    fs.mkdirSync(file); // for root, too
  };
  const CHANGES = [
    ['missing', (file) => fs.rmSync(file), /there is no file .*rollgate\.wasm/],
    ['empty', cut(0), /rollgate\.wasm: .*(is empty|BufferSource argument)/],
    ['cut by a byte', cut(whole.length - 1), /rollgate\.wasm: /],
    ['text', (file) => fs.writeFileSync(file, 'not found'), /magic word/],
    ['another one', (file) => fs.writeFileSync(file, OTHER_MODULE), /./],
    ['unreadable', unreadable, /EISDIR/],
  ];

  test.each(CHANGES)('is an error where it was chosen: %s', async (_, change, reason) => {
    const { error } = await ask(installed(change), IN_FORCE, { env: { ROLLGATE_BINDING: 'wasm' } });
    expect(error).toMatchObject({ name: 'Error', code: 'ERR_ROLLGATE_WASM' });
    expect(error.message).toMatch(/^rollgate's WebAssembly module cannot be used: /);
    expect(error.message).toMatch(reason);
  });

  test('does not hide why there is no addon', async () => {
    const { error, warnings } = await ask(
      installed((file) => fs.rmSync(file)),
      IN_FORCE,
    );
    expect(error.code).toBe('ERR_ROLLGATE_ADDON');
    expect(error.message).toContain('No native build was found');
    expect(error.message).toMatch(
      /\nrollgate's WebAssembly module cannot be used: there is no file/,
    );
    expect(warnings).toEqual([]);
  });

  test('is one under --jitless', async () => {
    const options = { env: { ROLLGATE_BINDING: 'wasm' }, flags: ['--jitless'] };
    const { error } = await ask(ROOT, IN_FORCE, options);
    expect(error).toMatchObject({ code: 'ERR_ROLLGATE_WASM' });
    expect(error.message).toContain('this host has no WebAssembly');
  });

  const withAddon = addonBinding() === undefined ? test.skip : test;
  withAddon('matters to nobody who has the addon', async () => {
    const env = { ROLLGATE_PREBUILD: process.env.ROLLGATE_PREBUILD ?? '' };
    const { error, warnings } = await ask(ROOT, IN_FORCE, { env, flags: ['--jitless'] });
    expect([error, warnings]).toEqual([undefined, []]);
  });
});
