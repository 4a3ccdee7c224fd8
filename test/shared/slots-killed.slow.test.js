// Processes that take slots that they share, are killed and stopped, and note what they hold and when.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { ConcurrencyLimiter } = require('../..');
const { newName } = require('../support/shared-regions');
const { patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const ROOT = path.join(__dirname, '..', '..');
const LIBRARY = JSON.stringify(ROOT);
const MAX = 5;
/** In all, of four at a time. */
const KILLS = 300;
const TIMES = 1_000_000;

/**
 * A program that takes and releases slots of three ids again and again, and writes when: a line has id, change, and the
 * time in ns after an acquisition or before a release.
 */
const racer = ({ shared, seed, times }) => `
  const { writeSync } = require('node:fs');
  const { randomFrom } = require(${JSON.stringify(path.join(ROOT, 'test/support/traces.js'))});
  const limiter = require(${LIBRARY}).ConcurrencyLimiter({ max: ${MAX}, maxKeys: 10, shared: '${shared}' });
  const random = randomFrom(${seed});
  const note = (id, change) => writeSync(1, id + ' ' + change + ' ' + process.hrtime.bigint() + '\\n');
  const held = [];
  for (let k = 0; k < ${times}; k++) {
    const id = 'abc'[random.between(0, 2)];
    const slot = limiter.acquire(id, { cost: random.between(1, 2) });
    if (slot.allowed) {
      note(id, slot.cost);
      held.push([slot, id]);
    }
    while (held.length > 0 && (!slot.allowed || random.chance(60))) {
      const [given, of] = held.splice(random.between(0, held.length - 1), 1)[0];
      note(of, -given.cost);
      given.release();
    }
  }
  process.exit(0); // whatever is held
`;

/** What is held at most, of any id, by the notes of programs. */
function mostHeld(notes) {
  const used = {};
  let most = 0;
  // What ends at the time at which something begins was there before.
  notes.sort((one, other) => Number(one.at - other.at) || one.change - other.change);
  for (const { id, change } of notes) {
    used[id] = (used[id] ?? 0) + change;
    most = Math.max(most, used[id]);
  }
  return most;
}

/** The notes of a program that was killed no sooner than `endedAt`, or ended; what it held it held until then. */
function notesOf(log, endedAt = 0n) {
  const notes = [];
  const held = { a: 0, b: 0, c: 0 };
  for (const line of log.split('\n').slice(0, -1)) {
    const [id, change, at] = line.split(' ');
    notes.push({ id, change: Number(change), at: BigInt(at) });
    held[id] += Number(change);
  }
  const lastAt = notes.at(-1)?.at ?? 0n;
  const at = endedAt > lastAt ? endedAt : lastAt;
  for (const [id, rest] of Object.entries(held)) notes.push({ id, change: -rest, at });
  return notes;
}

test(
  'processes that are killed and stopped never hold more than may be held, and all that they held is free in the end',
  async () => {
    const random = randomFrom(7);
    const shared = newName();
    const notes = [];
    let [kills, started] = [0, 0];

    async function runOne(times, isKilled) {
      const source = racer({ shared, seed: ++started, times });
      const stdio = ['ignore', 'pipe', 'inherit'];
      const child = spawn(process.execPath, ['-e', source], { stdio });
      const ended = once(child, 'close');
      let log = '';
      child.stdout.setEncoding('latin1').on('data', (text) => {
        log += text;
      });
      let endedAt;
      if (isKilled) {
        await Promise.race([once(child.stdout, 'data'), ended]);
        if (random.chance(30)) {
          child.kill('SIGSTOP');
          await pause(random.between(1, 30));
          child.kill('SIGCONT');
        }
        await pause(random.between(0, 40));
        endedAt = process.hrtime.bigint();
        child.kill('SIGKILL');
        kills++;
      }
      const [code] = await ended;
      expect(code).toBe(isKilled ? null : 0);
      for (const note of notesOf(log, endedAt)) notes.push(note);
    }

    const line = async () => {
      while (kills < KILLS) await runOne(TIMES, true);
      await runOne(TIMES / 4, false);
    };
    await Promise.all([line(), line(), line(), line()]);
    expect(mostHeld(notes)).toBe(MAX);
    const limiter = ConcurrencyLimiter({ shared, max: MAX, maxKeys: 10 });
    for (const id of 'abc') expect(limiter.usage(id).used).toBe(0);
    expect(limiter.acquire('a', { cost: MAX }).used).toBe(MAX);
    await limiter.close();
  },
  patient(600_000),
);
