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
  import RateLimiter, { type Decision, rateLimit } from 'rollgate';
  import rollgate from 'rollgate/fastify';
  import RollgateStore from 'rollgate/store';

  const limiter = RateLimiter({ interval: 1000, maxInInterval: 2 });
  const decision: Decision = limiter.attempt('a');
  const timeLeft: number = limiter('a');
  export const all = [decision, timeLeft, rateLimit(), rollgate, new RollgateStore()];
  // @ts-expect-error: a limit is a number
  RateLimiter({ interval: 1000, maxInInterval: 'two' });
`;
const REQUIRING = `
  import RateLimiter = require('rollgate');
  const limiter = new RateLimiter({ interval: 1000, maxInInterval: 2 });
  export const timeLeft: number = limiter('a');
`;
const RESOLUTIONS = {
  node16: { module: 'node16', moduleResolution: 'node16' },
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
    for (const name of ['fastify', '@types/node']) {
      fs.mkdirSync(path.dirname(path.join(app, 'node_modules', name)), { recursive: true });
      fs.symlinkSync(path.join(MODULES, name), path.join(app, 'node_modules', name));
    }
    fs.writeFileSync(path.join(app, 'program.mts'), PROGRAM);
    fs.writeFileSync(path.join(app, 'program.cts'), REQUIRING);
  }, 240_000);

  afterAll(removeFolders);

  test.each(Object.keys(RESOLUTIONS))('resolve under %s', async (resolution) => {
    const compilerOptions = {
      ...RESOLUTIONS[resolution],
      target: 'es2022',
      strict: true,
      noEmit: true,
      skipLibCheck: true, // the suite of types reads the declarations themselves
      types: ['node'],
    };
    // A bundler knows no `import = require`.
    const files = resolution === 'node16' ? ['program.mts', 'program.cts'] : ['program.mts'];
    const config = path.join(app, `tsconfig.${resolution}.json`);
    fs.writeFileSync(config, JSON.stringify({ compilerOptions, files }));
    const args = [path.join(MODULES, 'typescript/bin/tsc'), '-p', config];
    expect(await runNode(args, { cwd: app })).toEqual({ code: 0, stdout: '', stderr: '' });
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
