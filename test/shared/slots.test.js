// Slots that threads and processes share: those of holders that ended, were stopped or were killed.
'use strict';

const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { Worker } = require('node:worker_threads');
const { ConcurrencyLimiter } = require('../..');
const { runProgram, serve } = require('../support/run-program');
const { catchError, handClock } = require('../support/set-up');
const { filesOf, newName } = require('../support/shared-regions');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '..', '..');
const LIBRARY = JSON.stringify(ROOT);

const limiters = [];
function make(options) {
  const limiter = ConcurrencyLimiter({ max: 2, maxKeys: 100, ...options });
  limiters.push(limiter);
  return limiter;
}
afterEach(() => Promise.all(limiters.splice(0).map((limiter) => limiter.close())));

/** A program that holds a slot of '' with these options until it is killed. */
const holder = (options) =>
  serve(
    [
      '--eval',
      `const limiter = require(${LIBRARY}).ConcurrencyLimiter({ max: 2, maxKeys: 100, ...${JSON.stringify(options)} });
       globalThis.slot = limiter.acquire('');
       console.log('used ' + slot.used);
       setInterval(() => {}, 1000);`,
    ],
    {},
    /used \d/,
  );

async function kill({ child, ended }) {
  child.kill('SIGKILL');
  await ended;
}

describe('what is held by a process that was killed', () => {
  // Kills: a holder that is taken for alive because its number is in the record.
  test('is free at the next acquire, and is not counted', async () => {
    const shared = newName();
    const limiter = make({ shared });
    const [one, other] = [await holder({ shared }), await holder({ shared })];
    expect([one.found, other.found]).toEqual(['used 1', 'used 2']);
    expect(limiter.acquire('').allowed).toBe(false);
    await kill(one);
    expect(limiter.acquire('')).toMatchObject({ allowed: true, used: 2 });
    await kill(other);
    expect(limiter.usage('')).toEqual({ max: 2, used: 1, remaining: 1 });
    expect(limiter.acquire('')).toMatchObject({ allowed: true, used: 2 });
  });

  test('gives its place to other ids', async () => {
    const shared = newName();
    const dead = await holder({ shared, maxKeys: 1 });
    const limiter = make({ shared });
    expect(limiter.acquire('a')).toMatchObject({ allowed: false, used: 0, remaining: 0 });
    await kill(dead);
    expect(limiter.acquire('a').allowed).toBe(true);
  });

  test('goes to a call in another process that waits', async () => {
    const shared = newName();
    const dead = await holder({ shared, max: 1 });
    const waiting = make({ shared, max: 1 }).wait('');
    await kill(dead);
    expect(await waiting).toMatchObject({ allowed: true, used: 1 });
  });
});

test('what a worker thread holds is free when it has been terminated', async () => {
  const shared = newName();
  const limiter = make({ shared, max: 1 });
  const worker = new Worker(
    `globalThis.limiter = require(${LIBRARY}).ConcurrencyLimiter({ max: 1, maxKeys: 100, shared: '${shared}' });
     require('node:worker_threads').parentPort.postMessage(limiter.acquire('').allowed);
     setInterval(() => {}, 1000);`,
    { eval: true },
  );
  expect((await once(worker, 'message'))[0]).toBe(true);
  expect(limiter.acquire('').allowed).toBe(false);
  await worker.terminate();
  expect(limiter.acquire('').allowed).toBe(true);
});

// Kills: ends that only their own process knows.
test('what a stopped process holds ends with its maxAge', async () => {
  const shared = newName();
  const limiter = make({ shared, max: 1 });
  const stopped = await holder({ shared, max: 1, maxAge: patient(200) });
  stopped.child.kill('SIGSTOP');
  const eternal = newName();
  const other = make({ shared: eternal, max: 1 });
  const held = await holder({ shared: eternal, max: 1 });
  held.child.kill('SIGSTOP');
  expect(await limiter.wait('')).toMatchObject({ allowed: true, used: 1 });
  expect(other.acquire('').allowed).toBe(false);
  await Promise.all([kill(stopped), kill(held)]);
});

describe('two limiters of one name', () => {
  const pair = (options) => {
    const common = { shared: newName(), ...options };
    return [make(common), make(common)];
  };

  test('hold together as much as may be held, by what each call asks for', () => {
    const [one, other] = pair();
    const slot = one.acquire('a', { cost: 2 });
    expect(other.acquire('a')).toMatchObject({ allowed: false, used: 2 });
    expect(other.acquire('a', { max: 3 })).toMatchObject({ allowed: true, used: 3 });
    expect(slot.release()).toBe(true);
    expect(one.usage('a').used).toBe(1);
    expect([one.stats().held, other.stats().held]).toEqual([0, 1]);
  });

  test('hold nothing any more once they are closed, and their signals do not abort', async () => {
    const [one, other] = pair();
    const slot = one.acquire('a', { cost: 2 });
    const { lost } = slot;
    await one.close();
    expect(other.acquire('a').used).toBe(1);
    expect([slot.release(), lost.aborted]).toEqual([false, false]);
  });

  // Kills: a release that frees what was acquired after clear(); a signal that nobody aborts.
  test('lose what they hold by a clear of the other', async () => {
    const [one, other] = pair({ max: 1 });
    const before = one.acquire('a');
    const { lost } = before;
    await other.clear('a');
    const after = one.acquire('a');
    expect(after.allowed).toBe(true);
    expect(before.release()).toBe(false);
    expect(other.acquire('a').allowed).toBe(false);
    const { lost: lostAfter } = after;
    await other.clearAll();
    await once(lostAfter, 'abort');
    expect(lost.aborted).toBe(false); // it had been released, though it was lost
    expect(other.acquire('a').allowed).toBe(true);
  });

  // Kills: an end that is forgotten where there is no room for it; an end at the clock's largest time.
  test('count to the end what there is no room for by its end, at any time', () => {
    for (const start of [0, 1e12, Number.MAX_VALUE, -Number.MAX_VALUE]) {
      const time = handClock();
      const clock = () => start + time.clock();
      const [one, other] = pair({ max: 60_000, maxAge: 1000, clock });
      const slots = Array.from({ length: 400 }, () => {
        time.advance(1);
        return one.acquire('a');
      });
      expect(other.usage('a').used).toBe(400);
      const released = slots.filter((slot) => slot.release()).length;
      expect([released, other.usage('a').used]).toEqual([400, 0]);
    }
  });

  test('have an age that is never reached if it is too large for a clock', () => {
    const [one, other] = pair({ max: 1, maxAge: Number.MAX_VALUE });
    expect(one.acquire('a').allowed).toBe(true);
    expect(other.acquire('a').allowed).toBe(false);
  });
});

// Kills: timers that stay, or that keep a program up.
test('neither a signal nor a limiter that was closed keeps a program up', async () => {
  const { code, stdout } = await runProgram(`
    const { ConcurrencyLimiter } = require(${LIBRARY});
    const options = { max: 1, maxKeys: 100, shared: '${newName()}' };
    const [limiter, closed] = [ConcurrencyLimiter(options), ConcurrencyLimiter(options)];
    globalThis.slot = limiter.acquire('a');
    globalThis.signal = slot.lost;
    closed.wait('a').catch(({ code }) => console.log(code));
    setTimeout(() => closed.close(), 5);
  `);
  expect([code, stdout]).toEqual([0, 'ERR_ROLLGATE_CLOSED\n']);
});

describe('a region of slots', () => {
  const codeOf = (call) => catchError(call)?.code;

  test('has one clock for all, and at least the room that is asked for', () => {
    const shared = newName();
    make({ shared }).acquire('a');
    const others = [{ clock: () => 0 }, { shared: { name: shared, room: 17 } }];
    for (const options of others) {
      const limiter = make({ shared, ...options });
      expect(codeOf(() => limiter.acquire('a'))).toBe('ERR_ROLLGATE_SHARED_MISMATCH');
    }
    expect(make({ shared: { name: shared, room: 16 } }).acquire('a').used).toBe(2);
  });

  test('refuses holders of an id beyond its room, with one warning', () => {
    const shared = { name: newName(), room: 2 };
    const [one, other, third] = [
      make({ shared, max: 9 }),
      make({ shared }),
      make({ shared, max: 9 }),
    ];
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    expect([one, other].map((limiter) => limiter.acquire('a').used)).toEqual([1, 2]);
    for (let i = 0; i < 2; i++)
      expect(third.acquire('a')).toMatchObject({ allowed: false, remaining: 0 });
    const codes = warn.mock.calls.map(([, { code }]) => code);
    warn.mockRestore();
    expect(codes).toEqual(['ROLLGATE_SLOTS_FULL']);
    expect(one.acquire('a')).toMatchObject({ allowed: true, used: 3 });
  });

  // Kills: an error of a timer, or of the end of a turn, that nobody can catch.
  test('that is damaged makes calls throw, and nothing else', async () => {
    const shared = newName();
    const limiter = make({ shared, maxKeys: 10, max: 5 });
    const [slot, forgotten, watched] = Array.from({ length: 3 }, () => limiter.acquire('a'));
    const { lost } = watched;
    const [file] = filesOf(shared);
    const descriptor = fs.openSync(file, 'r+');
    const { size } = fs.fstatSync(descriptor);
    const header = 8192 + 2048; // the secret and the sizes stay
    fs.writeSync(descriptor, Buffer.alloc(size - header, 0xff), 0, size - header, header);
    expect(codeOf(() => limiter.acquire('a'))).toBe('ERR_ROLLGATE_SHARED_CORRUPT');
    expect(slot.release()).toBe(false);
    await once(lost, 'abort');
    expect(forgotten.release()).toBe(false);
    fs.closeSync(descriptor);
  });

  test('that there is no space for is an error of the system', () => {
    const shared = { name: newName(), maxKeys: 200_000_000, room: 65_535 };
    const limiter = ConcurrencyLimiter({ max: 1, shared });
    expect(codeOf(() => limiter.acquire('a'))).toBe('ERR_ROLLGATE_SHARED_SYSTEM');
  });
});

describe('a line that is never empty', () => {
  beforeEach(() =>
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] }),
  );
  afterEach(() => jest.useRealTimers());

  test.each([
    // Kills: a call that takes at once what the call before it in a loop has freed.
    ['a loop of calls', false],
    // Kills: a line that keeps what its own process releases, as long as somebody waits in it.
    ['a line in which somebody always waits', true],
  ])('%s leaves a slot to others now and then, and not more often', async (_what, waitsFirst) => {
    const shared = newName();
    const [busy, other] = [make({ shared, max: 1 }), make({ shared, max: 1 })];
    let slot = busy.acquire('a');
    let [turns, isServed] = [0, false];
    const isClosed = () => {}; // in the end
    other.wait('a').then(() => {
      isServed = true;
    }, isClosed);
    const wait = () => {
      const next = busy.wait('a');
      next.then((taken) => {
        slot = taken;
        turns += 1;
      }, isClosed);
    };
    for (let ms = 0; !isServed && ms < 10_000; ms += 7) {
      if (waitsFirst) wait();
      jest.advanceTimersByTime(7); // no moment is a whole second
      slot.release();
      if (!waitsFirst) wait();
      for (let i = 0; i < 3; i++) await new Promise(setImmediate);
    }
    expect(isServed).toBe(true);
    expect(turns).toBeGreaterThanOrEqual(140);
    expect(turns).toBeLessThan(200);
  });
});
