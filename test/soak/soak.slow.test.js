// A few seconds of the soak test, to know that the command runs: `npm run soak` takes minutes.
'use strict';

const path = require('node:path');
const { runNode } = require('../support/tarball');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '../..');
const PARTS = process.platform === 'linux' ? ['memory', 'redis', 'shared'] : ['memory', 'redis'];
const SECONDS = 3;

const soak = (...args) => runNode(['scripts/soak.mjs', ...args], { cwd: ROOT });

test.each(PARTS)(
  'a short soak passes: %s',
  async (part) => {
    const ended = await soak(`--only=${part}`, `--minutes=${SECONDS / 60}`);
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('violations 0') });
  },
  patient(120_000),
);

test('wrong arguments are refused', async () => {
  for (const wrong of ['--only=nothing', '--minutes=0', '--seed=x']) {
    const refused = { code: 1, stderr: expect.stringMatching(/^soak: --(only|minutes) takes/) };
    expect(await soak(wrong)).toMatchObject(refused);
  }
});
