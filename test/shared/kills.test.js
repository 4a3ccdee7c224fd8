// Programs that count together and are killed in the middle of it.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const RateLimiter = require('../..');

const NAME = `kills-${process.pid}`;
const IDS = 20;
const MAX = 500;
const KILLS = 12;
const AT_ONCE = 3;

/** Attempts on one id after the other until all are used up, and writes down what was allowed. */
const PROGRAM = `
  const { writeSync } = require('node:fs');
  const RateLimiter = require(${JSON.stringify(path.join(__dirname, '..', '..'))});
  const limiter = RateLimiter({
    shared: { name: '${NAME}', maxKeys: 100 },
    interval: 3_600_000,
    maxInInterval: ${MAX},
    countBlocked: false,
  });
  for (let isUsedUp = false; !isUsedUp; ) {
    isUsedUp = true;
    for (let id = 0; id < ${IDS}; id++) {
      if (limiter(id) > 0) continue;
      isUsedUp = false;
      writeSync(1, String.fromCharCode(97 + id));
    }
  }
`;

/** Runs the program; kills it once it has written so much, if it does. */
async function countUntil(killAfter, allowed) {
  const child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] });
  let written = 0;
  child.stdout.setEncoding('latin1');
  child.stdout.on('data', (letters) => {
    for (const letter of letters) allowed[letter.charCodeAt(0) - 97] += 1;
    written += letters.length;
    if (written >= killAfter) child.kill('SIGKILL');
  });
  const [code, signal] = await once(child, 'close');
  return { code, signal };
}

afterAll(() => RateLimiter.unlinkShared(NAME));

test('what the killed have counted stays counted, and the survivors go on', async () => {
  const allowed = Array(IDS).fill(0);
  const ends = [];
  const line = async () => {
    while (ends.length < KILLS)
      ends.push(await countUntil(1 + ((ends.length * 197) % 700), allowed));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, line));
  const killed = ends.filter(({ signal }) => signal === 'SIGKILL').length;
  expect(killed).toBeGreaterThan(KILLS / 2);

  expect(await countUntil(Infinity, allowed)).toEqual({ code: 0, signal: null });
  // Who is killed between counting and writing has counted one that nobody knows of.
  const total = allowed.reduce((sum, count) => sum + count, 0);
  expect(Math.max(...allowed)).toBeLessThanOrEqual(MAX);
  expect(total).toBeLessThanOrEqual(IDS * MAX);
  expect(total).toBeGreaterThanOrEqual(IDS * MAX - killed);
}, 60_000);
