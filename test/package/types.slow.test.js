// The types of the packed package compile in every way of resolving modules, and its entries pass the linters.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const tarballs = require('../support/tarball');
const { patient } = require('../support/tiers');

const { install, packRollgate, pathWithoutTools, removeFolders, runNode } = tarballs;
const ROOT = path.join(__dirname, '../..');
const MODULES = path.join(ROOT, 'node_modules');

// On Windows, npm is found elsewhere.
const describeHere = process.platform === 'win32' ? describe.skip : describe;

jest.setTimeout(patient(300_000));
afterAll(removeFolders);

const USE = `
  const options: RateLimiter.RateLimiterOptions = { limits: [{ interval: 1, maxInInterval: 1 }] };
  class Counting extends RateLimiter { count = 0; }
  export const counted: number = new Counting(options)('a') + RateLimiter(options)();
  RateLimiter.rateLimit({ limiter: new RateLimiter.RateLimiter(options) });
`;
/** Programs in TypeScript, by their names: each entry resolves. What its types allow is in test/types. */
const PROGRAMS = {
  default: `import RateLimiter from 'rollgate';\n${USE}`,
  require: `import RateLimiter = require('rollgate');\n${USE}`,
  named: `
    import { rateLimit, RateLimiter } from 'rollgate';
    import type { Decision } from 'rollgate';
    export const decision: Decision = RateLimiter({ interval: 1, maxInInterval: 2 }).attempt('a');
    // @ts-expect-error: no such option
    rateLimit({ windwMs: 1 });
  `,
  'without-express': `
    import { createServer } from 'node:http';
    import { rateLimit } from 'rollgate';
    createServer((req, res) => rateLimit()(req, res, () => res.end()));
  `,
  express: `
    import express from 'express';
    import { rateLimit, type RateLimitInfo, type WithRateLimit } from 'rollgate';
    const app = express();
    app.use(rateLimit({ keyGenerator: (req: express.Request) => String(req.query.key) }));
    app.get('/', rateLimit({ limit: 1 }), (req, res) => {
      const info: RateLimitInfo | undefined = req.rateLimit;
      res.json({ info, left: (req as WithRateLimit<express.Request>).rateLimit.remaining });
    });
  `,
  subpaths: `
    import createFastify from 'fastify';
    import { rateLimit } from 'express-rate-limit';
    import { register } from 'prom-client';
    import RateLimiter from 'rollgate';
    import plugin, { rollgate, type RollgateFastifyOptions } from 'rollgate/fastify';
    import { rateLimitFetch, type RateLimitFetchOptions } from 'rollgate/fetch';
    import { type Metrics, registerMetrics } from 'rollgate/metrics';
    import { RollgateThrottlerStorage, type RollgateThrottlerStorageOptions } from 'rollgate/nest';
    import Store, { RollgateStore, type RollgateStoreOptions } from 'rollgate/store';
    const ofStorage: RollgateThrottlerStorageOptions = { countBlocked: true };
    export const storage = new RollgateThrottlerStorage(ofStorage);
    const options: RollgateFastifyOptions = { limit: 2 };
    createFastify().register(plugin, options).register(rollgate, options);
    const ofStore: RollgateStoreOptions = { maxInInterval: undefined };
    for (const store of [new RollgateStore(ofStore), new Store()]) rateLimit({ store });
    const limiters = { api: new RateLimiter({ interval: 1000, maxInInterval: 2 }) };
    export const metrics: Metrics = registerMetrics({ register, limiters });
    const ofFetch: RateLimitFetchOptions = { limit: (_request, { ip }) => (ip ? 1 : 0) };
    rateLimitFetch(ofFetch)(new Request('http://host.test/'), { ip: '::1' });
  `,
  // Without rollgate itself, the property is that of express-rate-limit.
  'store-alone': `
    import express from 'express';
    import { type AugmentedRequest, rateLimit } from 'express-rate-limit';
    import RollgateStore from 'rollgate/store';
    const app = express().use(rateLimit({ store: new RollgateStore() }));
    app.get('/', (req) => (req as AugmentedRequest).rateLimit.remaining);
  `,
};
const ALL = ['default.mts', 'default.cts', 'named.mts', 'named.cts', 'require.cts', 'express.mts'];
const BUNDLER = { module: 'esnext', moduleResolution: 'bundler' };
const OLD = { module: 'commonjs', moduleResolution: 'node10' };
const PLAIN = { ...OLD, esModuleInterop: false };

describeHere('the types of the packed package', () => {
  let sources;
  let app;
  beforeAll(async () => {
    sources = await packRollgate({ prebuilt: false });
    const flags = ['--ignore-scripts']; // types need no addon
    ({ app } = await install(sources, { PATH: pathWithoutTools(), flags }));
  });

  /** Compiles with the strictest settings, the declarations of these packages included. */
  function compile(files, options, ...packages) {
    for (const name of ['@types/node', ...packages]) {
      const place = path.join(app, 'node_modules', name);
      fs.mkdirSync(path.dirname(place), { recursive: true });
      if (!fs.existsSync(place)) fs.symlinkSync(path.join(MODULES, name), place);
    }
    for (const file of files) {
      fs.writeFileSync(path.join(app, file), PROGRAMS[path.parse(file).name]);
    }
    const compilerOptions = {
      target: 'es2022',
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
      esModuleInterop: true,
      types: ['node'],
      ...options,
    };
    fs.writeFileSync(path.join(app, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
    return runNode([path.join(MODULES, 'typescript/bin/tsc')], { cwd: app });
  }
  const GOOD = { code: 0, stdout: '', stderr: '' };

  test('need no types of Express', async () => {
    expect(await compile(['without-express.mts'], { module: 'node16' })).toEqual(GOOD);
  });

  test.each([
    ['node16', [...ALL, 'subpaths.mts'], { module: 'node16' }],
    // which knows no `import = require`
    ['a bundler', ['default.ts', 'named.ts', 'express.ts', 'subpaths.ts'], BUNDLER],
    ['CommonJS', ['default.ts', 'named.ts', 'require.ts'], OLD],
    ['CommonJS without esModuleInterop', ['named.ts', 'require.ts'], PLAIN],
    ['rollgate/store alone', ['store-alone.mts'], { module: 'node16' }],
  ])('compile under %s', async (_name, files, options) => {
    const packages = ['@types/express', 'express-rate-limit', 'fastify', 'prom-client'];
    expect(await compile(files, options, ...packages)).toEqual(GOOD);
  });

  test('pass publint and attw', async () => {
    const publint = [path.join(MODULES, 'publint/src/cli.js'), 'run', '--strict', sources.file];
    const { code, stdout } = await runNode(publint, { cwd: ROOT });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('All good!') });
    const program = path.join(MODULES, '@arethetypeswrong/cli/dist/index.js');
    const attw = await runNode([program, sources.file, '--format=json'], { cwd: ROOT });
    expect([attw.code, JSON.parse(attw.stdout).problems]).toEqual([0, {}]);
  });
});
