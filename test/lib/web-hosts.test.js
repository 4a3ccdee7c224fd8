// The package for hosts without modules of Node, on Node: `--conditions=browser` chooses the browser's entry.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const fc = require('fast-check');
const { sha256 } = require('../../lib/base/platform/sha256');
const web = require('../../lib/base/platform/web');
const { askProgram } = require('../support/run-program');
const { casesOf } = require('../support/tiers');

const LIB = path.join(__dirname, '..', '..', 'lib');
const PROGRAM = JSON.stringify(path.join(__dirname, '..', 'hosts', 'program.mjs'));

/** What a program prints as JSON, with the package for browsers, or for Node without a condition. */
const printed = (source, flags = ['--conditions=browser']) =>
  askProgram(source, { type: 'module', flags });

const hasModule = fs.existsSync(path.join(LIB, 'native', 'wasm', 'rollgate.wasm'));
const describeWithModule = hasModule ? describe : describe.skip;

describeWithModule('the package for hosts without modules of Node', () => {
  test('decides, waits, refuses and names keys in a store as on Node', async () => {
    const source = `
      import * as rollgate from 'rollgate';
      import { run } from ${PROGRAM};
      console.log(JSON.stringify([rollgate.rateLimit === undefined, await run(rollgate)]));
    `;
    const [isOfNode, expected] = await printed(source, []);
    const [isOfHost, found] = await printed(source);
    expect([isOfNode, isOfHost]).toEqual([false, true]);
    expect(found).toEqual(expected);
  });

  test('works by require, with import giving the same, and refuses what it does not have', async () => {
    const found = await printed(`
      import { createRequire } from 'node:module';
      import limiterOf, * as imported from 'rollgate';
      import { unsupported } from ${PROGRAM};
      const required = createRequire(import.meta.url)('rollgate');
      const names = Object.keys(imported).sort();
      console.log(JSON.stringify([limiterOf === required, names, unsupported(imported)]));
    `);
    const names = ['ConcurrencyLimiter', 'RateLimiter', 'attemptAll', 'default'];
    expect(found).toEqual([true, names, Array(3).fill('ERR_ROLLGATE_UNSUPPORTED')]);
  });

  test('calls back later, and an exception of the callback is uncaught', async () => {
    const found = await printed(`
      import RateLimiter from 'rollgate';
      const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
      const order = [];
      process.on('uncaughtException', ({ message }) => {
        console.log(JSON.stringify([...order, message]));
      });
      process.on('unhandledRejection', () => order.push('a rejection'));
      limiter('ada', (...answer) => {
        order.push(answer);
        throw new Error('on purpose');
      });
      order.push('returned');
    `);
    expect(found).toEqual(['returned', [null, 0, 0], 'on purpose']);
  });

  test('works without FinalizationRegistry, as workerd is with early compatibility dates', async () => {
    const found = await printed(`
      delete globalThis.FinalizationRegistry;
      const { default: RateLimiter } = await import('rollgate');
      const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
      const waits = [limiter('ada'), limiter('ada') > 0];
      await limiter.close();
      console.log(JSON.stringify(waits));
    `);
    expect(found).toEqual([0, true]);
  });

  test('makes no limiter where WebAssembly is missing, and says why each time', async () => {
    const found = await printed(`
      delete globalThis.WebAssembly;
      const { default: RateLimiter } = await import('rollgate');
      const codes = [1, 2].map(() => {
        try {
          return RateLimiter({ interval: 60_000, maxInInterval: 1 });
        } catch ({ code, message }) {
          return [code, message];
        }
      });
      console.log(JSON.stringify(codes));
    `);
    expect(found).toEqual(
      Array(2).fill([
        'ERR_ROLLGATE_WASM',
        "rollgate's WebAssembly module cannot be used: this host has no WebAssembly",
      ]),
    );
  });
});

describe('the files for hosts without modules of Node', () => {
  /** What package.json maps to other files there. */
  const MAPPED = {
    '#stores': ['stores/web.js'],
    '#native': ['native/web.js'],
    '#platform': ['base/platform/web.js'],
    '#module': ['browser.js', 'edge-light.js', 'workerd.mjs'].map(
      (file) => `native/module/${file}`,
    ),
  };

  /** What a file requires or imports. */
  function requiredBy(file) {
    const source = fs.readFileSync(file, 'utf8');
    const names = [...source.matchAll(/(?:require\(|from |import )'([^']+)'/g)].map(
      ([, name]) => name,
    );
    const outside = names.filter((name) => !name.startsWith('rollgate')); // in messages
    return outside.flatMap((name) => MAPPED[name]?.map((own) => path.join(LIB, own)) ?? name);
  }

  function fileOf(name, from) {
    const place = path.resolve(path.dirname(from), name.replace(/[?]module$/, ''));
    const isFile = (file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile();
    return [place, `${place}.js`, path.join(place, 'index.js')].find(isFile) ?? `${place}.js`;
  }

  test('require nothing but each other', () => {
    const entries = [
      'web.js',
      'edge-light.mjs',
      'adapters/fetch.js',
      'adapters/fetch-edge-light.mjs',
    ];
    const files = entries.map((entry) => path.join(LIB, entry));
    const outside = [];
    const ofNode = [];
    const seen = new Set(files);
    for (const file of seen) {
      const code = fs.readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
      if (/[^.'\w](Buffer|process|setImmediate|__dirname)\b/.test(code)) ofNode.push(file);
      const isBuilt = /wasm[/\\](embedded\.js|rollgate\.wasm)/.test(file);
      for (const name of isBuilt ? [] : requiredBy(file)) {
        const isOwn = name.startsWith('.') || path.isAbsolute(name);
        if (isOwn) seen.add(fileOf(name, file));
        else outside.push(`${path.relative(LIB, file)} requires ${name}`);
      }
    }
    const reached = [...seen].map((file) => path.relative(LIB, file).replaceAll('\\', '/'));
    // Without modules of Node itself.
    expect([...new Set(outside)].sort()).toEqual([
      'adapters/middleware/client.js requires ipaddr.js',
      'adapters/middleware/proxies.js requires proxy-addr',
    ]);
    expect(reached).toEqual(
      expect.arrayContaining([
        'stores/kv/store.js',
        'adapters/middleware/rules/index.js',
        'native/wasm/core.js',
      ]),
    );
    expect(reached).not.toContain('base/platform/node.js');
    expect(ofNode).toEqual([]);
  });
});

describe('addresses for these hosts', () => {
  const parts = ['1', '255', '256', '01', 'a', 'ffff', 'fffff', 'g', ''];
  const joined = (separator, most) =>
    fc.array(fc.constantFrom(...parts), { maxLength: most }).map((array) => array.join(separator));
  const ends = fc.constantFrom('', '%eth0', '%', '%a%b', '%a b', '%\u00e9', ' ', '\n', '/64');
  const address = fc
    .tuple(fc.constantFrom('', '::', '::ffff:'), joined('.', 5), joined(':', 9), ends)
    .map(([start, dotted, groups, end]) => `${start}${groups}${dotted}${end}`);
  const usual = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.ipV6().map((ip) => `${ip}%eth0`),
  );

  test('are those that Node knows', () => {
    const property = fc.property(fc.oneof(address, usual), (ip) => {
      expect([ip, web.isIP(ip)]).toEqual([ip, net.isIP(ip)]);
    });
    const examples = ['256.1.1.1', '1.2.3.256', '255.249.199.99', '01.2.3.4', '::ffff:1.2.3.256'];
    fc.assert(property, {
      numRuns: casesOf(20_000),
      examples: examples.map((ip) => [ip]),
    });
  });
});

describe('SHA-256 for these hosts', () => {
  test('is that of Node for every length around the blocks', () => {
    for (let length = 0; length <= 300; length += 1) {
      const bytes = Uint8Array.from({ length }, (_, i) => (i * 151 + length * 89) & 255);
      expect(Buffer.from(sha256(bytes)).toString('hex')).toBe(
        createHash('sha256').update(bytes).digest('hex'),
      );
    }
  });
});
