// A few seconds of the soak test, to know that the command runs: `npm run soak` takes minutes.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '../..');
const PARTS = process.platform === 'linux' ? ['memory', 'redis', 'shared'] : ['memory', 'redis'];
const SECONDS = 3;

async function soak(...args) {
  const child = spawn(process.execPath, ['scripts/soak.mjs', ...args], { cwd: ROOT });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, output };
}

test.each(PARTS)(
  'a short soak passes: %s',
  async (part) => {
    const { code, output } = await soak(`--only=${part}`, `--minutes=${SECONDS / 60}`);
    expect({ code, output }).toEqual({ code: 0, output: expect.stringContaining('violations 0') });
  },
  patient(120_000),
);

test('wrong arguments are refused', async () => {
  for (const wrong of ['--only=nothing', '--minutes=0', '--seed=x']) {
    expect((await soak(wrong)).code).toBe(2);
  }
});
