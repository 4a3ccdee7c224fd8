// Programs that attempt as fast as they can, and how many of their actions were in one interval.
'use strict';

const { serve, stop } = require('./run-program');
const { SureUses } = require('./sure-uses');

const INTERVAL_MS = 200;

/**
 * A program that attempts as fast as it can until SIGTERM, then writes the times of its allowed attempts by the clock of
 * the region: pairs of us, before and after each. `change(n)` runs before each turn.
 */
const program = (options, change = '() => {}') => `
  const RateLimiter = require('rollgate');
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
  process.on('SIGTERM', () => { isOver = true; });
  Promise.resolve(limiter.peek('hot')).then(() => {
    console.log('ready');
    turn();
  });
`;

/** Starts such a program, once it has attached; `end()` gives what it wrote. */
async function startProgram(...given) {
  const served = await serve(['-e', program(...given)], {}, /ready\n/);
  async function end() {
    const { code } = await stop(served);
    if (code !== 0) throw new Error(`the program ended with ${code}: ${served.output.stderr}`);
    return JSON.parse(served.output.stdout.slice('ready\n'.length));
  }
  return { end };
}

/** The most actions that surely are in one interval, whatever their times between before and after. */
function mostInInterval(actions) {
  const uses = new SureUses();
  const first = actions.reduce((least, [before]) => Math.min(least, before), Infinity);
  for (const [before, after] of actions) uses.note(before - first, after - first);
  return uses.mostIn(INTERVAL_MS * 1000);
}

module.exports = { INTERVAL_MS, mostInInterval, startProgram };
