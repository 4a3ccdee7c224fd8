// The recipes of docs/recipes.md for several processes and for test runners, run by those.
'use strict';

const { execFile, execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { unlinkShared } = require('../..');
const { fetchText, inTurn } = require('../middleware/apps');
const { blocksOf, ROOT } = require('../support/page-programs');
const { waitUntil } = require('../support/outcome');
const { serve, stop } = require('../support/run-program');
const { patient } = require('../support/tiers');
const { codeOf, times } = require('./recipes');

const PATIENCE_MS = patient(60_000);

const folders = [];
afterAll(() => {
  for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
});

/** A folder with these files, from which the package can be loaded by its name. */
function folderWith(parent, files) {
  const folder = fs.mkdtempSync(path.join(parent, 'rollgate-recipe-'));
  folders.push(folder);
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(ROOT, path.join(folder, 'node_modules/rollgate'), 'junction');
  for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, name), text);
  return folder;
}

/** Starts what an ecosystem file describes by node:cluster, as PM2 does in this mode, and starts ended processes again. */
const STARTER = `
  const cluster = require('node:cluster');
  const { apps: [{ script, instances, exec_mode }] } = require('./ecosystem.json');
  if (exec_mode !== 'cluster' || instances !== 'max') throw new Error('not as the test knows it');
  cluster.setupPrimary({ exec: require('node:path').join(__dirname, script) });
  let listening = 0;
  cluster.on('listening', (_worker, { port }) => {
    listening += 1;
    if (listening >= 3) console.log('listening', listening, port);
  });
  cluster.on('exit', () => cluster.fork());
  for (let i = 0; i < 3; i++) cluster.fork();
  process.on('SIGTERM', () => {
    cluster.removeAllListeners('exit');
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGKILL');
    process.exit();
  });
`;

const describeShared = process.platform === 'linux' ? describe : describe.skip;

describeShared('PM2 and cluster', () => {
  const region = `recipe-${process.pid}`;
  let server;
  afterEach(async () => {
    if (server !== undefined) await stop(server);
    unlinkShared(region);
  });

  test('all processes keep one limit, and the counts survive all that are killed', async () => {
    const ours = [
      ["name: 'api'", `name: '${region}'`],
      ['3000', '0'],
    ];
    const folder = folderWith(os.tmpdir(), {
      'server.js': codeOf('PM2 and cluster', ...ours),
      'ecosystem.json': blocksOf('docs/recipes.md', 'json')[0],
      'starter.js': STARTER,
    });
    const env = { NODE_PATH: path.join(ROOT, 'node_modules') };
    server = await serve([path.join(folder, 'starter.js')], env, /listening 3 \d+/);
    const url = `http://127.0.0.1:${server.found.split(' ')[2]}/`;
    const get = () => fetchText(url, { headers: { connection: 'close' } });

    const first = await inTurn(times(6, url), get);
    const pids = first.map(({ text }) => /^process (\d+): /.exec(text)[1]);
    expect(new Set(pids).size).toBe(3);
    expect(first.map(({ text }) => text.split(': ')[1])).toEqual(
      [9, 8, 7, 6, 5, 4].map((left) => `${left} left\n`),
    );
    // One by one, because a port that nobody listens on any more would be another one.
    for (const [i, pid] of [...new Set(pids)].entries()) {
      process.kill(Number(pid), 'SIGKILL');
      await waitUntil('it is replaced', () => server.output.stdout.includes(`listening ${4 + i} `));
    }
    const later = await inTurn(times(6, url), get);
    expect(later.map(({ status }) => status)).toEqual([...times(4, 200), 429, 429]);
    for (const { text } of later.slice(0, 4)) {
      expect(pids).not.toContain(/^process (\d+): /.exec(text)[1]);
    }
  });
});

/** How a test runner ends, and its report as JSON. */
function runTests(program, args, cwd) {
  const report = path.join(cwd, 'report.json');
  return new Promise((resolve) => {
    const options = { cwd, timeout: PATIENCE_MS, env: { ...process.env, NODE_OPTIONS: '' } };
    const command = [program, ...args, `--outputFile=${report}`];
    execFile(process.execPath, command, options, (error, _, stderr) => {
      if (!fs.existsSync(report)) throw new Error(`${program}: ${error} ${stderr}`);
      resolve({ failed: error !== null, ...JSON.parse(fs.readFileSync(report, 'utf8')) });
    });
  });
}

const PASSED = { failed: false, numFailedTests: 0, numPassedTests: 2, success: true };

jest.setTimeout(2 * PATIENCE_MS);

test('the tests with Jest pass, in Jest', async () => {
  const folder = folderWith(os.tmpdir(), {
    'greeter.test.js': codeOf('Tests with Jest'),
    'package.json': '{}',
  });
  const program = path.join(ROOT, 'node_modules/jest/bin/jest.js');
  expect(await runTests(program, ['--json'], folder)).toMatchObject(PASSED);
});

/** The last major version that runs on Node.js 20. */
const VITEST = '4.1.12';

test('the tests with Vitest pass, in Vitest', async () => {
  const install = `
    import { npmFolder } from './scripts/caches.mjs';
    process.stdout.write(npmFolder('vitest', { vitest: '${VITEST}' }));`;
  const args = ['--input-type=module', '--eval', install];
  const installed = execFileSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  // Inside of it, so that the file finds Vitest.
  const folder = folderWith(installed, { 'greeter.test.js': codeOf('Tests with Vitest') });
  const program = path.join(installed, 'node_modules/vitest/vitest.mjs');
  const options = ['run', `--root=${folder}`, '--reporter=json'];
  expect(await runTests(program, options, folder)).toMatchObject(PASSED);
});
