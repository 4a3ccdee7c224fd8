// The types of the packed package, as compilers and linters of packages find them.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const {
  install,
  packRollgate,
  pathWithoutTools,
  removeFolders,
  runNode,
} = require('../support/tarball');

const MODULES = path.join(__dirname, '../../node_modules');

/** The same program, by import and by require, as far as TypeScript tells them apart. */
const PROGRAM = `
  import express from 'express';
  import expressRateLimit from 'express-rate-limit';
  import RateLimiter, { type Decision, type RateLimitInfo, rateLimit } from 'rollgate';
  import rollgate from 'rollgate/fastify';
  import { registerMetrics } from 'rollgate/metrics';
  import RollgateStore from 'rollgate/store';

  const limiter = RateLimiter({ interval: 1000, maxInInterval: 2 });
  const decision: Decision = limiter.attempt('a');
  const timeLeft: number = limiter('a');
  export const all = [decision, timeLeft, rateLimit(), rollgate, new RollgateStore()];
  // @ts-expect-error: a limit is a number
  RateLimiter({ interval: 1000, maxInInterval: 'two' });

  const either = RateLimiter({ redis: process.env.REDIS_URL, interval: 1000, maxInInterval: 2 });
  export const wait: number = await either('a');
  registerMetrics({ limiters: { either }, prefix: undefined });

  const app = express();
  app.use(rateLimit({ windowMs: undefined, rules: undefined, limit: 5 }));
  app.use(expressRateLimit({ store: new RollgateStore({ maxInInterval: undefined }) }));
  app.get('/', (req, res) => {
    const info: RateLimitInfo | undefined = req.rateLimit;
    res.json(info);
  });
`;

/** Without `rollgate` itself, the property is that of express-rate-limit. */
const STORE_ALONE = `
  import express from 'express';
  import { type AugmentedRequest, rateLimit } from 'express-rate-limit';
  import RollgateStore from 'rollgate/store';

  const app = express();
  app.use(rateLimit({ store: new RollgateStore() }));
  app.get('/', (req, res) => {
    const left: number = (req as AugmentedRequest).rateLimit.remaining;
    res.json(left);
  });
`;

/** No types but those of Node are needed. */
const WITHOUT_EXPRESS = `
  import { createServer } from 'node:http';
  import { rateLimit } from 'rollgate';
  const limit = rateLimit();
  createServer((req, res) => limit(req, res, () => res.end()));
`;
const REQUIRING = `
  import RateLimiter = require('rollgate');
  const limiter = new RateLimiter({ interval: 1000, maxInInterval: 2 });
  export const timeLeft: number = limiter('a');
`;
const PROGRAMS = {
  'program.mts': PROGRAM,
  'program.cts': REQUIRING,
  'store-alone.mts': STORE_ALONE,
  'without-express.mts': WITHOUT_EXPRESS,
};
const GOOD = { code: 0, stdout: '', stderr: '' };
const RESOLUTIONS = {
  node16: { module: 'node16', moduleResolution: 'node16' },
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};

const describeHere = process.platform === 'win32' ? describe.skip : describe;

jest.setTimeout(120_000); // compilers take their time

describeHere('the types of the packed package', () => {
  let tarball;
  let app;

  beforeAll(async () => {
    tarball = await packRollgate({ prebuilt: true });
    ({ app } = await install(tarball, { PATH: pathWithoutTools() }));
    link('@types/node');
    for (const [file, source] of Object.entries(PROGRAMS)) {
      fs.writeFileSync(path.join(app, file), source);
    }
  }, 240_000);

  afterAll(removeFolders);

  function link(name) {
    const place = path.join(app, 'node_modules', name);
    fs.mkdirSync(path.dirname(place), { recursive: true });
    fs.symlinkSync(path.join(MODULES, name), place);
  }

  /** Compiles with the strictest settings, the declarations of all packages included. */
  function compile(name, files) {
    const compilerOptions = {
      ...RESOLUTIONS[name],
      target: 'es2022',
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      noEmit: true,
      esModuleInterop: true,
      types: ['node'],
    };
    const config = path.join(app, `tsconfig.${name}.json`);
    fs.writeFileSync(config, JSON.stringify({ compilerOptions, files }));
    return runNode([path.join(MODULES, 'typescript/bin/tsc'), '-p', config], { cwd: app });
  }

  test('need no types of Express', async () => {
    expect(await compile('node16', ['without-express.mts'])).toEqual(GOOD);
  });

  describe('beside those of Express, express-rate-limit and Fastify', () => {
    beforeAll(() => {
      for (const name of ['@types/express', 'express-rate-limit', 'fastify']) link(name);
    });

    test.each(Object.keys(RESOLUTIONS))('compile under %s', async (name) => {
      // A bundler knows no `import = require`.
      const files = name === 'bundler' ? ['program.mts'] : ['program.mts', 'program.cts'];
      expect(await compile(name, files)).toEqual(GOOD);
    });

    test('of rollgate/store alone leave the request to express-rate-limit', async () => {
      expect(await compile('node16', ['store-alone.mts'])).toEqual(GOOD);
    });
  });

  test('pass publint', async () => {
    const args = [path.join(MODULES, 'publint/src/cli.js'), 'run', '--strict', tarball.file];
    const { code, stdout } = await runNode(args, { cwd: app });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('All good!') });
  });

  test('pass attw', async () => {
    const program = path.join(MODULES, '@arethetypeswrong/cli/dist/index.js');
    const args = [program, tarball.file, '--format=json'];
    const { code, stdout } = await runNode(args, { cwd: app });
    expect({ code, problems: JSON.parse(stdout).problems }).toEqual({ code: 0, problems: {} });
  });
});
