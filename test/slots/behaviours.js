// The behaviours of slots on every store. A behaviour is a sentence and a function of a suite:
//
// - `make(options)` creates a limiter of one slot unless they say otherwise
// - `advance(ms)` moves its clock
// - `failureOf(call)`: the error that a call throws or rejects with
// - `isSync`: whether the store answers at once
'use strict';

const shown = ({ allowed, max, used, remaining }) => ({ allowed, max, used, remaining });
const nextTurn = () => new Promise(setImmediate);

/** Whether a promise is settled after some turns of the event loop. */
async function isSettled(promise) {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  for (let i = 0; i < 5; i++) await nextTurn();
  return settled;
}

const acquiring = {
  async 'as many are held at once as may be, and a refusal changes nothing'({ make }) {
    const limiter = make({ max: 2 });
    const first = await limiter.acquire('a');
    expect(shown(first)).toEqual({ allowed: true, max: 2, used: 1, remaining: 1 });
    expect(shown(await limiter.acquire('a')).used).toBe(2);
    for (let i = 0; i < 3; i++) {
      const refusal = { allowed: false, max: 2, used: 2, remaining: 0 };
      expect(await limiter.acquire('a')).toEqual(refusal);
    }
    expect(await limiter.usage('a')).toEqual({ max: 2, used: 2, remaining: 0 });
    expect((await limiter.acquire('b')).allowed).toBe(true);
    expect(await first.release()).toBe(true);
    expect((await limiter.acquire('a')).allowed).toBe(true);
  },

  async 'a call has a maximum of its own: of a plan'({ make }) {
    const limiter = make({ max: 2 });
    for (let used = 1; used <= 4; used++) {
      const slot = await limiter.acquire('a', { max: 4 });
      expect(shown(slot)).toEqual({ allowed: true, max: 4, used, remaining: 4 - used });
    }
    expect((await limiter.acquire('a', { max: 4 })).allowed).toBe(false);
    const refusal = { allowed: false, max: 0, used: 0, remaining: 0 };
    expect(await limiter.acquire('b', { max: 0 })).toEqual(refusal);
    expect((await limiter.acquire('b', { cost: 2, max: 1 })).allowed).toBe(false);
  },

  // Kills: a release on Redis that does not wait for the answer.
  async 'slots and usage come at once or as promises, by the store, and releases with them'({
    make,
    isSync,
  }) {
    const limiter = make();
    const [slot, usage] = [limiter.acquire('a'), limiter.usage('a')];
    const released = (await slot).release();
    for (const answer of [slot, usage, released]) expect(answer instanceof Promise).toBe(!isSync);
    await Promise.all([usage, released]);
  },

  // Kills: a bound release; a release of refusals.
  async 'release is a method of the slot: true once, and nothing that a refusal has'({
    make,
    failureOf,
  }) {
    const limiter = make();
    const slot = await limiter.acquire('a');
    expect((await limiter.acquire('a')).release).toBe(undefined);
    const { release } = slot;
    expect(await failureOf(() => release())).toBeInstanceOf(TypeError);
    expect([await slot.release(), await slot.release()]).toEqual([true, false]);
  },

  async 'undefined, null and the empty string are one id, and so are 1 and "1"'({ make }) {
    const limiter = make();
    await limiter.acquire();
    for (const id of [null, '']) expect((await limiter.acquire(id)).allowed).toBe(false);
    await limiter.acquire(1);
    for (const id of ['1', 1n]) expect((await limiter.acquire(id)).allowed).toBe(false);
  },
};

const losing = {
  async 'a slot that is older than maxAge is lost'({ make, advance }) {
    const limiter = make({ maxAge: 100 });
    const slot = await limiter.acquire('a');
    advance(99);
    expect((await limiter.acquire('a')).allowed).toBe(false);
    expect(slot.lost.aborted).toBe(false);
    advance(1);
    const next = await limiter.acquire('a');
    expect(next.allowed).toBe(true);
    expect([slot.lost.aborted, slot.lost.reason.code]).toEqual([true, 'ERR_ROLLGATE_SLOT_LOST']);
    expect([await slot.release(), await next.release()]).toEqual([false, true]);
    const unread = await limiter.acquire('b');
    advance(100);
    expect(unread.lost.aborted).toBe(true);
  },

  // Kills: a time-out that nobody has set.
  async 'without maxAge, a slot is held for ever'({ make, advance }) {
    const limiter = make();
    const slot = await limiter.acquire('a');
    advance(1e12);
    expect((await limiter.acquire('a')).allowed).toBe(false);
    expect(await slot.release()).toBe(true);
  },

  async 'clear loses the slots of an id, and clearAll all'({ make }) {
    const limiter = make({ max: 2 });
    const [a, b, unread] = [
      await limiter.acquire('a'),
      await limiter.acquire('b'),
      await limiter.acquire('a'),
    ];
    expect([a.lost.aborted, b.lost.aborted]).toEqual([false, false]);
    await limiter.clear('a');
    expect([a.lost.aborted, b.lost.aborted, unread.lost.aborted]).toEqual([true, false, true]);
    expect([await limiter.usage('a'), await limiter.usage('b')].map(({ used }) => used)).toEqual([
      0, 1,
    ]);
    const again = await limiter.acquire('a');
    expect(await a.release()).toBe(false);
    expect((await limiter.usage('a')).used).toBe(1);
    await limiter.clearAll();
    expect([again.lost.aborted, b.lost.aborted]).toEqual([true, true]);
    for (const slot of [again, b, unread]) expect(await slot.release()).toBe(false);
    expect((await limiter.stats()).held).toBe(0);
  },

  async 'the signal of a slot that was released never aborts'({ make, advance }) {
    const limiter = make({ maxAge: 100 });
    const [read, unread] = [await limiter.acquire('a'), await limiter.acquire('b')];
    expect(read.lost.aborted).toBe(false);
    await read.release();
    await unread.release();
    advance(200);
    await limiter.clearAll();
    expect([read.lost.aborted, unread.lost.aborted]).toEqual([false, false]);
  },
};

const waiting = {
  async 'a slot goes to those that wait, in their order'({ make }) {
    const limiter = make();
    const held = await limiter.acquire('a');
    const order = [];
    const calls = [1, 2, 3].map(async (n) => {
      const slot = await limiter.wait('a');
      order.push(n);
      await slot.release();
    });
    expect(await isSettled(calls[0])).toBe(false);
    await held.release();
    await Promise.all(calls);
    expect(order).toEqual([1, 2, 3]);
    expect((await limiter.usage('a')).used).toBe(0);
  },

  async 'a higher priority goes first, and a large demand holds up smaller ones behind it'({
    make,
  }) {
    const limiter = make({ max: 2 });
    const held = [await limiter.acquire('a'), await limiter.acquire('a')];
    const order = [];
    const waitFor = async (name, options) => {
      const slot = await limiter.wait('a', options);
      order.push(name);
      return slot;
    };
    const both = waitFor('both', { cost: 2, priority: 1 });
    const small = waitFor('small');
    await held[0].release();
    expect(await isSettled(small)).toBe(false);
    await held[1].release();
    await (await both).release();
    await (await small).release();
    expect(order).toEqual(['both', 'small']);
  },

  async 'what a large demand is refused, a smaller one of a higher priority gets'({ make }) {
    const limiter = make({ max: 3 });
    const slot = await limiter.acquire('a');
    const large = limiter.wait('a', { cost: 3 });
    expect(await isSettled(large)).toBe(false);
    const small = await limiter.wait('a', { priority: 3 });
    expect(small.used).toBe(2);
    await slot.release();
    await small.release();
    expect((await large).used).toBe(3);
  },

  async 'waiting ends with its deadline, its signal, a full line or close()'({ make, failureOf }) {
    const limiter = make();
    const slot = await limiter.acquire('a');
    const controller = new AbortController();
    const left = limiter.wait('a', { signal: controller.signal });
    const closed = limiter.wait('a');
    const codes = [
      (await failureOf(() => limiter.wait('a', { deadline: 5 }))).code,
      (await failureOf(() => limiter.wait('a', { maxQueue: 2 }))).code,
    ];
    expect(codes).toEqual(['ERR_ROLLGATE_WAIT_DEADLINE', 'ERR_ROLLGATE_WAIT_QUEUE']);
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await failureOf(() => left)).toBe(reason);
    const failed = failureOf(() => closed);
    await limiter.close();
    expect((await failed).code).toBe('ERR_ROLLGATE_CLOSED');
    expect([await slot.release(), slot.lost.aborted]).toEqual([false, false]);
    expect((await failureOf(() => limiter.acquire('a'))).code).toBe('ERR_ROLLGATE_CLOSED');
  },

  async 'a maximum that rises lets calls in, and one that falls refuses what never fits'({
    make,
    failureOf,
  }) {
    const limiter = make({ max: 2 });
    await limiter.acquire('a', { cost: 2 });
    const [one, two] = [limiter.wait('a'), failureOf(() => limiter.wait('a', { cost: 2 }))];
    limiter.setMax(1);
    expect((await two).code).toBe('ERR_ROLLGATE_COST');
    expect(await isSettled(one)).toBe(false);
    limiter.setMax(3);
    expect((await one).used).toBe(3);
  },

  async 'a slot that is lost goes to those that wait'({ make }) {
    const limiter = make();
    await limiter.acquire('a');
    const call = limiter.wait('a');
    expect(await isSettled(call)).toBe(false);
    await limiter.clear('a');
    expect((await call).allowed).toBe(true);
  },

  async 'run holds a slot as long as its function runs, however that ends'({ make, failureOf }) {
    const limiter = make();
    let used;
    const result = await limiter.run('a', async (slot) => {
      used = [slot.used, (await limiter.usage('a')).used];
      return 'done';
    });
    expect([result, ...used]).toEqual(['done', 1, 1]);
    const error = new Error('no');
    const failing = () =>
      limiter.run('a', { deadline: 1000 }, () => {
        throw error;
      });
    expect(await failureOf(failing)).toBe(error);
    expect((await limiter.usage('a')).used).toBe(0);
    let finish;
    const work = new Promise((resolve) => {
      finish = resolve;
    });
    const [first, second] = [limiter.run('a', () => work), limiter.run('a', () => 'second')];
    expect(await isSettled(second)).toBe(false);
    finish();
    await first;
    expect(await second).toBe('second');
    expect((await failureOf(() => limiter.run('a'))).code).toBe('ERR_ROLLGATE_CALLBACK');
  },

  // Kills: a call that knows its caller and takes over its slot.
  async 'run within run waits for a slot of its own'({ make, failureOf }) {
    const limiter = make();
    const inner = () => limiter.run('a', { deadline: 20 }, () => 'done');
    const error = await failureOf(() => limiter.run('a', inner));
    expect(error.code).toBe('ERR_ROLLGATE_WAIT_DEADLINE');
  },

  async 'a slot that a listener of another signal releases is not lost'({ make }) {
    for (const clear of [(limiter) => limiter.clearAll(), (limiter) => limiter.clear('a')]) {
      const limiter = make({ max: 2 });
      const [first, second] = [await limiter.acquire('a'), await limiter.acquire('a')];
      first.lost.addEventListener('abort', () => second.release());
      const { lost } = second;
      await clear(limiter);
      expect([first.lost.aborted, lost.aborted]).toEqual([true, false]);
    }
  },

  async 'a listener of a signal may close the limiter, whatever is being done'({ make, advance }) {
    const ends = [
      (limiter) => limiter.clearAll(),
      (limiter) => limiter.clear('a'),
      (limiter) => limiter.stats(),
      (_limiter, slot) => slot.release(),
      (limiter) => limiter.acquire('b'),
    ];
    for (const end of ends) {
      const limiter = make({ max: 5, maxAge: 100 });
      const slots = [];
      for (let i = 0; i < 5; i++) slots.push(await limiter.acquire('a'));
      let closed;
      for (const { lost } of slots) {
        lost.addEventListener('abort', () => {
          closed ??= limiter.close();
        });
      }
      if (end.length === 2 || String(end).match(/stats|acquire/)) advance(100);
      try {
        await end(limiter, slots[4]);
      } catch (error) {
        expect(error.code).toBe('ERR_ROLLGATE_CLOSED');
      }
      await closed;
      expect(slots.filter(({ lost }) => lost.aborted)).toHaveLength(1);
      expect(await slots[3].release()).toBe(false);
    }
  },

  async 'a slot is released at the end of its block'({ make }) {
    const limiter = make();
    const slot = await limiter.acquire('a');
    await slot[Symbol.asyncDispose]();
    expect((await limiter.usage('a')).used).toBe(0);
    expect(await slot.release()).toBe(false);
    await limiter.acquire('a');
    const refusal = await limiter.acquire('a');
    expect(await refusal[Symbol.asyncDispose]()).toBe(undefined);
    expect((await limiter.usage('a')).used).toBe(1);
  },
};

const refusing = {
  async 'bad input has a code and holds nothing'({ make, failureOf }) {
    const limiter = make({ max: 3 });
    const codeOf = async (call) => (await failureOf(call)).code;
    for (const cost of [0, 4, 1.5, -1, Number.NaN, '1', null, 2n]) {
      expect(await codeOf(() => limiter.acquire('a', { cost }))).toBe('ERR_ROLLGATE_COST');
      expect(await codeOf(() => limiter.wait('a', { cost }))).toBe('ERR_ROLLGATE_COST');
    }
    for (const max of [-1, 65_536, 1.5, Number.NaN, '1', null]) {
      expect(await codeOf(() => limiter.acquire('a', { max }))).toBe('ERR_ROLLGATE_OPTION');
      expect(await codeOf(() => limiter.setMax(max))).toBe('ERR_ROLLGATE_OPTION');
    }
    expect(await codeOf(() => limiter.setMax(0))).toBe('ERR_ROLLGATE_OPTION');
    for (const options of [null, 5, 'x', [], { costs: 1 }]) {
      expect(await codeOf(() => limiter.acquire('a', options))).toBe('ERR_ROLLGATE_OPTION');
    }
    for (const id of [Symbol('a'), {}, [], true, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(await codeOf(() => limiter.acquire(id))).toBe('ERR_ROLLGATE_ID');
    }
    expect(await codeOf(() => limiter.wait('a', { cost: 2, max: 1 }))).toBe('ERR_ROLLGATE_COST');
    expect((await limiter.stats()).held).toBe(0);
  },
};

module.exports = { acquiring, losing, waiting, refusing };
