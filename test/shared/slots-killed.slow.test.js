// Processes that take slots that they share, are killed and stopped, and note what they hold and when.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { setTimeout: pause } = require('node:timers/promises');
const { ConcurrencyLimiter } = require('../..');
const { newName } = require('../support/shared-regions');
const { patient } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const ROOT = path.join(__dirname, '..', '..');
const LIBRARY = JSON.stringify(ROOT);

/**
 * A program that takes and releases slots of three ids again and again, and notes when: a line has the time in ns
 * after an acquisition or before a release.
 */
const racer = ({ shared, max, log, seed, times, maxAge }) => `
  const { openSync, writeSync } = require('node:fs');
  const { randomFrom } = require(${JSON.stringify(path.join(ROOT, 'test/support/traces.js'))});
  const limiter = require(${LIBRARY}).ConcurrencyLimiter({ max: ${max}, maxKeys: 10, maxAge: ${maxAge}, shared: '${shared}' });
  const random = randomFrom(${seed});
  const file = openSync('${log}', 'a');
  const note = (sign, id, cost) => writeSync(file, sign + id + ' ' + cost + ' ' + process.hrtime.bigint() + '\\n');
  const held = [];
  for (let k = 0; k < ${times}; k++) {
    const id = 'abc'[random.between(0, 2)];
    const slot = limiter.acquire(id, { cost: random.between(1, 2) });
    if (slot.allowed) {
      note('+', id, slot.cost);
      held.push([slot, id]);
    }
    while (held.length > 0 && (!slot.allowed || random.chance(60))) {
      const [given, of] = held.splice(random.between(0, held.length - 1), 1)[0];
      note('-', of, given.cost);
      given.release();
    }
  }
  process.exit(0); // whatever is held
`;

/** What is held at most, of any id, by the notes of programs: [time, change, id]. */
function mostHeld(notes) {
  const used = {};
  let most = 0;
  // What ends at the time at which something begins was there before.
  notes.sort(([one, by], [other, otherBy]) => (one < other ? -1 : one > other ? 1 : by - otherBy));
  for (const [, change, id] of notes) {
    used[id] = (used[id] ?? 0) + change;
    most = Math.max(most, used[id]);
  }
  return most;
}

/** The notes of a program that was killed no sooner than `endedAt`, or ended; what it held it held until then. */
function notesOf(log, endedAt) {
  const notes = [];
  const held = [];
  for (const line of fs.readFileSync(log, 'utf8').split('\n').slice(0, -1)) {
    const [sign, cost, time] = [line[0], Number(line.split(' ')[1]), BigInt(line.split(' ')[2])];
    notes.push([time, sign === '+' ? cost : -cost, line[1]]);
    if (sign === '+') held.push([cost, line[1]]);
    else {
      const place = held.findIndex(([of, id]) => of === cost && id === line[1]);
      held.splice(place, 1);
    }
  }
  const [lastAt] = notes.at(-1) ?? [0n];
  const end = endedAt > lastAt ? endedAt : lastAt;
  for (const [cost, id] of held) notes.push([end, -cost, id]);
  return notes;
}

describe('processes that take slots of the same ids, are killed and stopped', () => {
  const MAX = 5;
  /** In all, of four at a time. */
  const KILLS = 300;
  const TIMES = 1_000_000;
  let directory;
  beforeAll(() => {
    directory = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-slots-'));
  });
  afterAll(() => fs.rmSync(directory, { recursive: true }));

  test(
    'never hold more than may be held, and all that they held is free in the end',
    async () => {
      const random = randomFrom(7);
      const shared = newName();
      const notes = [];
      let [kills, started] = [0, 0];

      async function runOne(times, isKilled) {
        const log = path.join(directory, `${started++}`);
        const source = racer({ shared, max: MAX, log, seed: started, times, maxAge: undefined });
        const child = spawn(process.execPath, ['-e', source], { stdio: 'inherit' });
        const ended = once(child, 'close');
        let endedAt;
        if (isKilled) {
          while (!fs.existsSync(log) && child.exitCode === null) await pause(5);
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
        fs.rmSync(log);
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
});
