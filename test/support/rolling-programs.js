// Programs that attempt as fast as they can, and how many of their actions were in one interval.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');

const ROOT = path.join(__dirname, '..', '..');
const INTERVAL_MS = 200;

/**
 * A program that attempts as fast as it can until its input ends, then writes the times of its allowed attempts by the
 * clock of the region: pairs of us, before and after each. `change(n)` runs before each turn.
 */
const program = (options, change = '() => {}') => `
  const RateLimiter = require(${JSON.stringify(ROOT)});
  const limiter = RateLimiter({ interval: ${INTERVAL_MS}, countBlocked: false, ...${JSON.stringify(options)} });
  const change = ${change};
  const micros = () => Number(process.hrtime.bigint() / 1000n);
  const allowed = [];
  let isOver = false;
  let turns = 0;
  async function attempt() {
    const before = micros();
    if ((await limiter('hot')) === 0) allowed.push([before, micros()]);
  }
  async function turn() {
    change(turns++);
    await Promise.all(Array.from({ length: 50 }, attempt));
    if (!isOver) setImmediate(turn);
    else process.stdout.write(JSON.stringify({ allowed, stats: limiter.stats() }), () => process.exit());
  }
  process.stdin.resume().on('end', () => { isOver = true; });
  Promise.resolve(limiter.peek('hot')).then(() => {
    console.log('ready');
    turn();
  });
`;

/** Starts such a program, once it has attached; `end()` gives what it wrote. */
async function startProgram(...given) {
  const child = spawn(process.execPath, ['-e', program(...given)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text;
    });
  }
  const closed = once(child, 'close');
  await Promise.race([once(child.stdout, 'data'), closed]);
  async function end() {
    child.stdin.end();
    const [code] = await closed;
    if (code !== 0) throw new Error(`the program ended with ${code}: ${output.stderr}`);
    return JSON.parse(output.stdout.slice('ready\n'.length));
  }
  return { end };
}

/** Clocks of processes differ by some microseconds. */
const SLACK_US = 100;

/** The most actions that surely are in one interval, whatever their times between before and after. */
function mostInInterval(actions) {
  const sorted = [...actions].sort(([a], [b]) => a - b);
  let most = 0;
  for (const [i, [start]] of sorted.entries()) {
    const end = start + INTERVAL_MS * 1000 - SLACK_US;
    let n = 0;
    for (let j = i; j < sorted.length && sorted[j][0] < end; j++) if (sorted[j][1] < end) n += 1;
    most = Math.max(most, n);
  }
  return most;
}

module.exports = { INTERVAL_MS, mostInInterval, startProgram };
