// Behaviours: the option `clock`, clocks that fail and clocks that step back.
'use strict';

const { MINUTE, SECOND, START_MS, codeOf, failureOf, fullFor } = require('./support');

module.exports = {
  async 'a clock that throws fails that call, and the limiter lives on'({ make }) {
    const mine = new Error('the clock is broken');
    let works = true;
    const clock = () => {
      if (!works) throw mine;
      return START_MS;
    };
    const limiter = make({ clock });
    await limiter('a');
    works = false;
    const calls = [
      () => limiter('a'),
      () => limiter.attempt('a'),
      () => limiter.peek('a'),
      () => limiter.limit('a'),
      () => limiter.attemptMany(['b', 'a']),
      () =>
        new Promise((resolve, reject) => {
          limiter('a', (error) => (error ? reject(error) : resolve()));
        }),
    ];
    for (const call of calls) {
      const error = await failureOf(call);
      expect([error.code, error.cause]).toEqual(['ERR_ROLLGATE_CLOCK', mine]);
    }
    works = true;
    expect(limiter.stats()).toMatchObject({ allowed: 1, blocked: 0, errors: calls.length });
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
    expect(await limiter.attempt('b')).toMatchObject({ allowed: true, actionsLeft: 1 });
  },

  async 'a clock that gives no finite number fails that call'({ make }) {
    let reading = START_MS;
    const limiter = make({ clock: () => reading });
    await limiter('a');
    const wrong = [Number.NaN, Infinity, -Infinity, undefined, null, '5', 5n, {}, new Date()];
    for (reading of wrong) {
      expect(await codeOf(() => limiter('a'))).toBe('ERR_ROLLGATE_CLOCK');
    }
    reading = START_MS;
    expect(await limiter.attempt('a')).toMatchObject({ allowed: true, actionsLeft: 0 });
  },

  async 'a step back lets nothing more through'({ make, at, algorithm }) {
    const limiter = make();
    await limiter.attempt('a', { cost: 2 });
    for (const micros of [-1, -SECOND, -MINUTE, -2 * MINUTE, -1000 * MINUTE]) {
      at(micros);
      const left = Math.ceil((fullFor(algorithm, 2) - micros) / 1000);
      expect(await limiter.peek('a')).toMatchObject({ allowed: false, timeLeft: left });
    }
    at(fullFor(algorithm, 2) - 1);
    expect((await limiter.peek('a')).allowed).toBe(false);
    at(fullFor(algorithm, 2));
    expect((await limiter.peek('a')).allowed).toBe(true);
  },

  async 'with minDifference a step back waits for the newest action'({ make, at }) {
    const limiter = make({ maxInInterval: 9, minDifference: 1000 });
    await limiter('a');
    at(-5 * SECOND);
    expect(await limiter.attempt('a')).toMatchObject({
      blockedBy: 'minDifference',
      timeLeft: 6000,
    });
  },

  async 'no more pass in all while a clock goes to and fro'({ make, at }) {
    const limiter = make({ maxInInterval: 5 });
    let allowed = 0;
    for (const seconds of [3, -3, 2, -50, 1, 0, -1000, 3, 2]) {
      at(seconds * SECOND);
      for (let i = 0; i < 3; i++) allowed += (await limiter('a')) === 0 ? 1 : 0;
    }
    expect(allowed).toBe(5);
  },

  async 'fractions of a ms are taken to the microsecond'({ make, time }) {
    const limiter = make({ maxInInterval: 9, minDifference: 0.002 });
    time.set(1000 + 0.0004);
    await limiter('a');
    time.set(1000 + 0.0014); // one microsecond
    expect((await limiter.peek('a')).allowed).toBe(false);
    time.set(1000 + 0.0016); // two
    expect((await limiter.peek('a')).allowed).toBe(true);
  },

  async 'times without end are borne'({ make }) {
    for (const reading of [1e300, -1e300, Number.MAX_SAFE_INTEGER, 0, -0, Number.MIN_VALUE]) {
      const limiter = make({ clock: () => reading });
      const answers = [await limiter('a'), await limiter('a'), await limiter('a')];
      expect(answers[0]).toBe(0);
      for (const answer of answers) expect(answer).toBeGreaterThanOrEqual(0);
      await limiter.clear('a');
    }
  },

  async 'durations and counts without end are borne'({ make, store, algorithm }) {
    const isLog = algorithm === 'sliding-window-log';
    const limiter = make({
      interval: Number.MAX_VALUE,
      maxInInterval: (isLog && store.longestLog) || Number.MAX_SAFE_INTEGER,
      minDifference: 1e300,
      blockFor: Number.MAX_VALUE,
    });
    expect(await limiter('a')).toBe(0);
    expect(await limiter('a')).toBeGreaterThan(1e11);
  },

  async 'the built-in clock moves by itself'({ make }) {
    const limiter = make({ clock: undefined, interval: 86_400_000, maxInInterval: 2 });
    const [first, second, third] = [await limiter('a'), await limiter('a'), await limiter('a')];
    expect([first, second]).toEqual([0, 0]);
    expect(third).toBeGreaterThan(0);
    expect(third).toBeLessThanOrEqual(86_400_001);
  },
};
