// The types of the packed package, as compilers and linters of packages find them.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const tarballs = require('../support/tarball');
const { patient } = require('../support/tiers');

const { install, packRollgate, pathWithoutTools, removeFolders, runNode } = tarballs;
const MODULES = path.join(__dirname, '../../node_modules');

const describeHere = process.platform === 'win32' ? describe.skip : describe;

jest.setTimeout(patient(240_000));

afterAll(removeFolders);

const USE = `
  const options: RateLimiter.RateLimiterOptions = { limits: [{ interval: 1, maxInInterval: 1 }] };
  const same: RateLimiter = new RateLimiter.RateLimiter({ interval: 1, maxInInterval: 1 });
  const decision: RateLimiter.Decision = new RateLimiter.InMemoryRateLimiter(options).attempt('a');
  class Counting extends RateLimiter { count = 0; }
  const counted: number = new Counting(options)('a') + RateLimiter(options)() + new Counting(options).count;
  RateLimiter.rateLimit({ limiter: same });
  export { counted, decision, same };
`;
/** Programs in TypeScript, by their names. */
const PROGRAMS = {
  default: `import RateLimiter from 'rollgate';\n${USE}`,
  require: `import RateLimiter = require('rollgate');\n${USE}`,
  named: `
    import { ipKeyGenerator, rateLimit, RateLimiter, InMemoryRateLimiter } from 'rollgate';
    import type { Decision, RateLimitInfo, RateLimiterOptions, Stats } from 'rollgate';
    const options: RateLimiterOptions = { interval: 1000, maxInInterval: 2 };
    const limiter: RateLimiter = new InMemoryRateLimiter(options);
    export const decision: Decision = limiter.attempt(ipKeyGenerator('192.0.2.1'));
    export const stats: Stats = limiter.stats();
    export let info: RateLimitInfo;
    rateLimit({ windowMs: undefined, rules: undefined, limit: 2 });
    // @ts-expect-error: a limit is a number
    RateLimiter({ interval: 1000, maxInInterval: 'two' });
    // @ts-expect-error: no such option
    rateLimit({ windwMs: 1 });
  `,
  'without-express': `
    import { createServer } from 'node:http';
    import { rateLimit } from 'rollgate';
    const limit = rateLimit();
    createServer((req, res) => limit(req, res, () => res.end()));
  `,
  express: `
    import express from 'express';
    import { rateLimit, RateLimiter, type RateLimitInfo, type WithRateLimit } from 'rollgate';
    const app = express();
    app.use(rateLimit({ keyGenerator: (req) => req.ip, skip: (req) => req.method === 'OPTIONS' }));
    app.use(rateLimit({ keyGenerator: (req: express.Request) => String(req.query.key) }));
    const limiter = new RateLimiter({ interval: 1000, maxInInterval: 2 });
    app.use(rateLimit({
      limiter,
      handler: (req: express.Request, res: express.Response, _next, settings) =>
        res.status(settings.statusCode).json({ path: req.path }),
    }));
    app.get('/', rateLimit({ limit: 1 }), (req, res) => {
      const info: RateLimitInfo | undefined = req.rateLimit;
      res.json({ info, left: (req as WithRateLimit<express.Request>).rateLimit.remaining });
    });
  `,
  subpaths: `
    import createFastify from 'fastify';
    import { rateLimit } from 'express-rate-limit';
    import RateLimiter from 'rollgate';
    import plugin, { rollgate, type RollgateFastifyOptions } from 'rollgate/fastify';
    import { register } from 'prom-client';
    import { type Metrics, registerMetrics } from 'rollgate/metrics';
    import Store, { RollgateStore, type RollgateStoreOptions } from 'rollgate/store';
    const options: RollgateFastifyOptions = { limit: 2 };
    const app = createFastify();
    app.register(plugin, options);
    app.register(rollgate, { keyGenerator: (request) => request.ip });
    app.get('/', (request) => request.rateLimit?.remaining);
    const given: RollgateStoreOptions = { maxInInterval: 5 };
    rateLimit({ store: new RollgateStore(given) });
    rateLimit({ store: new Store({ maxInInterval: undefined }) });
    const either = RateLimiter({ redis: process.env.REDIS_URL, interval: 1000, maxInInterval: 2 });
    export const wait: number = await either('a');
    export const metrics: Metrics = registerMetrics({ register, limiters: { either }, prefix: undefined });
  `,
  // Without rollgate itself, the property is that of express-rate-limit.
  'store-alone': `
    import express from 'express';
    import { type AugmentedRequest, rateLimit } from 'express-rate-limit';
    import RollgateStore from 'rollgate/store';
    const app = express();
    app.use(rateLimit({ store: new RollgateStore() }));
    app.get('/', (req, res) => {
      const left: number = (req as AugmentedRequest).rateLimit.remaining;
      res.json(left);
    });
  `,
};
const ALL = ['default.mts', 'default.cts', 'named.mts', 'named.cts', 'require.cts', 'express.mts'];
const OLD = { module: 'commonjs', moduleResolution: 'node10' };

describeHere('the types of the packed package', () => {
  let tarball;
  let app;

  function link(...names) {
    for (const name of names) {
      const place = path.join(app, 'node_modules', name);
      fs.mkdirSync(path.dirname(place), { recursive: true });
      fs.symlinkSync(path.join(MODULES, name), place);
    }
  }

  beforeAll(async () => {
    tarball = await packRollgate({ prebuilt: false });
    // Types need no addon.
    ({ app } = await install(tarball, { PATH: pathWithoutTools(), flags: ['--ignore-scripts'] }));
    link('@types/node');
  });

  /** Compiles with the strictest settings, the declarations of all packages included. */
  function compile(files, options) {
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
    ['nodenext', [...ALL, 'subpaths.mts'], { module: 'nodenext' }],
    [
      'a bundler', // which knows no `import = require`
      ['default.ts', 'named.ts', 'express.ts', 'subpaths.ts'],
      { module: 'esnext', moduleResolution: 'bundler' },
    ],
    ['CommonJS', ['default.ts', 'named.ts', 'require.ts'], OLD],
    [
      'CommonJS without esModuleInterop',
      ['named.ts', 'require.ts'],
      { ...OLD, esModuleInterop: false },
    ],
    ['rollgate/store alone', ['store-alone.mts'], { module: 'node16' }],
  ])('compile under %s', async (_name, files, options) => {
    if (!fs.existsSync(path.join(app, 'node_modules/fastify'))) {
      link('@types/express', 'express-rate-limit', 'fastify', 'prom-client');
    }
    expect(await compile(files, options)).toEqual(GOOD);
  });

  test('pass publint and attw', async () => {
    const publint = [path.join(MODULES, 'publint/src/cli.js'), 'run', '--strict', tarball.file];
    const { code, stdout } = await runNode(publint, { cwd: app });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('All good!') });
    const program = path.join(MODULES, '@arethetypeswrong/cli/dist/index.js');
    const attw = await runNode([program, tarball.file, '--format=json'], { cwd: app });
    expect([attw.code, JSON.parse(attw.stdout).problems]).toEqual([0, {}]);
  });
});
