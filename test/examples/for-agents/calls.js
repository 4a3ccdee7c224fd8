// What docs/for-agents.md says about limiters in memory: results, options, counting and ids.
'use strict';

const RateLimiter = require('../../..');
const { appWith, get } = require('../../middleware/apps');
const { askProgram } = require('../../support/run-program');

const withCode = (code) => expect.objectContaining({ code: `ERR_ROLLGATE_${code}` });

/** A limiter, by default of 2 in a second, and its clock. */
function limiterOf(options) {
  const hand = { now: 0 };
  const limits = { interval: 1000, maxInInterval: 2, clock: () => hand.now };
  return { hand, limiter: RateLimiter({ ...limits, ...options }) };
}

const times = (count, act) => Array.from({ length: count }, act);
const ONE = { maxInInterval: 1 };

exports.sections = {
  Results: {
    '`limiter(id)` returns the milliseconds to wait, and `0` means allowed: `if (limiter(id))` is true for a refusal.'() {
      const { limiter } = limiterOf();
      expect(times(3, () => limiter('ada'))).toEqual([0, 0, 1000]);
    },
    '`attempt(id)` returns an object, for a refusal too: look at its `allowed`.'() {
      const { limiter } = limiterOf(ONE);
      expect(limiter.attempt('ada')).toMatchObject({ allowed: true, timeLeft: 0 });
      expect(limiter.attempt('ada')).toMatchObject({ allowed: false, timeLeft: 1000 });
    },
    '`await limiter.limit(id)` is `true` if the action was refused.': async () => {
      const { limiter } = limiterOf(ONE);
      expect([await limiter.limit('ada'), await limiter.limit('ada')]).toEqual([false, true]);
    },
    'A refusal is a result: nothing throws, and no promise rejects.': async () => {
      const { limiter } = limiterOf(ONE);
      limiter('ada');
      expect(() => limiter('ada')).not.toThrow();
      await expect(limiter.limitWithInfo('ada')).resolves.toMatchObject({ blocked: true });
    },
    'A refused attempt is allowed exactly `timeLeft` later, and not a millisecond before, if nothing else is attempted meanwhile.'() {
      const { hand, limiter } = limiterOf();
      limiter('ada');
      hand.now = 300;
      limiter('ada');
      const { timeLeft } = limiter.attempt('ada');
      hand.now += timeLeft - 1;
      expect(limiter.peek('ada').allowed).toBe(false);
      hand.now += 1;
      expect(limiter('ada')).toBe(0);
    },
    '`limit`, `wouldLimit`, `limitWithInfo`, `wait`, `block`, `clear`, `clearAll` and `close` return promises in memory, too. `setLimits` and `stats` do not.'() {
      const { limiter } = limiterOf({ maxInInterval: 10 });
      const names = ['limit', 'wouldLimit', 'limitWithInfo', 'wait', 'clear', 'clearAll'];
      const results = [...names.map((name) => limiter[name]('ada')), limiter.block('ada', 0)];
      expect(limiter.setLimits([{ interval: 1000, maxInInterval: 3 }])).toBeUndefined();
      expect(limiter.stats().then).toBeUndefined();
      for (const result of [...results, limiter.close()]) {
        expect(typeof result.then).toBe('function');
      }
    },
    'With a callback, `limiter(id, callback)` returns nothing, and calls `callback(error, timeLeft, actionsLeft)` in a later tick.':
      async () => {
        const { limiter } = limiterOf();
        const callback = jest.fn();
        expect(limiter('ada', callback)).toBeUndefined();
        expect(callback).not.toHaveBeenCalled();
        await new Promise(setImmediate);
        expect(callback.mock.calls).toEqual([[null, 0, 1]]);
      },
    '`peek` returns what an attempt would: with a limit of 3 and nothing used, its `actionsLeft` is 2. Where refused attempts count, its `timeLeft` includes that; `usage(id).timeLeft` is the time without another attempt.'() {
      const { hand, limiter } = limiterOf({ maxInInterval: 3 });
      expect(times(2, () => limiter.peek('ada').actionsLeft)).toEqual([2, 2]);
      limiter('bob');
      hand.now = 300;
      times(2, () => limiter('bob'));
      expect([limiter.peek('bob').timeLeft, limiter.usage('bob').timeLeft]).toEqual([1000, 700]);
    },
  },

  Options: {
    "The package itself, and its default export, is `RateLimiter`, which creates limiters. The middleware is `const { rateLimit } = require('rollgate')` or `import { rateLimit } from 'rollgate'`. `RateLimiter({ windowMs, limit })` is an error.":
      async () => {
        const exports = await askProgram(
          `import main, { rateLimit } from 'rollgate';
          console.log(JSON.stringify([main.name, rateLimit.name, main.rateLimit === rateLimit]));`,
          { type: 'module' },
        );
        expect(exports).toEqual(['RateLimiter', 'rateLimit', true]);
        const options = { windowMs: 60_000, limit: 100 };
        expect(() => RateLimiter(options)).toThrow(withCode('OPTION'));
        expect(RateLimiter.rateLimit(options)).toHaveLength(3);
      },
    "Durations are numbers of milliseconds: `'1000'`, `'1m'` and `'60s'` are errors, and 60 is 60 ms."() {
      for (const interval of ['1000', '1m', '60s']) {
        expect(() => limiterOf({ interval })).toThrow(withCode('OPTION'));
      }
      const { limiter } = limiterOf({ interval: 60, maxInInterval: 1 });
      expect([limiter('ada'), limiter('ada')]).toEqual([0, 60]);
    },
    'Unknown options are errors, not ignored: `points`, `duration`, `max`, `tokensPerInterval`, `reservoir`, `minTime`.'() {
      const names = ['points', 'duration', 'max', 'tokensPerInterval', 'reservoir', 'minTime'];
      for (const name of names) {
        expect(() => limiterOf({ [name]: 1 })).toThrow(withCode('OPTION'));
      }
    },
    '`undefined` means that an option is not set. So with `redis: process.env.REDIS_URL`, a limiter counts in memory where the variable is missing.'() {
      const { limiter } = limiterOf({ redis: undefined, namespace: 'api', maxInInterval: 1 });
      expect([limiter('ada'), limiter('ada')]).toEqual([0, 1000]);
    },
    '`maxInInterval: 0` is an error. `limit: 0` of `rateLimit`, and `limits: 0` of a call, refuse everything.':
      async () => {
        expect(() => limiterOf({ maxInInterval: 0 })).toThrow(withCode('OPTION'));
        const { status } = await get(appWith(RateLimiter.rateLimit({ limit: 0 })));
        expect(status).toBe(429);
        expect(limiterOf().limiter.attempt('ada', { limits: 0 }).allowed).toBe(false);
      },
    "A window of a calendar day or month (`calendar: 'month'` in place of `interval`) requires `algorithm: 'fixed-window'`."() {
      const limits = [{ calendar: 'month', maxInInterval: 1000 }];
      expect(() => RateLimiter({ limits })).toThrow(withCode('OPTION'));
      expect(() => RateLimiter({ limits, algorithm: 'fixed-window' })).not.toThrow();
    },
  },

  Counting: {
    '`RateLimiter` counts refused attempts (`countBlocked` is `true` by default), so a client that tries again too early stays refused.'() {
      const allowedOf = (options) => {
        const { hand, limiter } = limiterOf(options);
        return times(40, () => {
          hand.now += 250;
          return limiter('ada');
        }).filter((timeLeft) => timeLeft === 0).length;
      };
      expect(allowedOf()).toBe(2);
      expect(allowedOf({ countBlocked: false })).toBe(20);
    },
    'Windows roll: there is no moment at which the count begins again at 0. Each action leaves `interval` ms after it happened.'() {
      const { hand, limiter } = limiterOf({ countBlocked: false });
      limiter('ada');
      hand.now = 900;
      limiter('ada');
      hand.now = 1000;
      expect([limiter('ada'), limiter('ada')]).toEqual([0, 900]);
    },
    '`resetIn` is the time until there is more room, not until all room is back.'() {
      const { hand, limiter } = limiterOf({ maxInInterval: 3 });
      limiter('ada');
      hand.now = 600;
      limiter('ada');
      expect(limiter.usage('ada')).toMatchObject({ used: 2, resetIn: 400 });
    },
    "Only the default algorithm never allows more than the limit in any interval: `'fixed-window'` allows twice the limit around a boundary, and `'gcra'` nearly twice."() {
      const mostOf = (algorithm, at) => {
        const limits = { maxInInterval: 10, countBlocked: false, algorithm };
        const { hand, limiter } = limiterOf(limits);
        const steps = [...times(10, () => at), ...times(100, (_, i) => at + 1 + i * 9.9)];
        return steps.filter((now) => {
          hand.now = now;
          return limiter('ada') === 0;
        }).length;
      };
      expect(mostOf('sliding-window-log', 999)).toBe(10);
      expect(mostOf('fixed-window', 999)).toBe(20);
      expect(mostOf('gcra', 999)).toBe(19);
    },
    'A `cost` that does not fit is refused as a whole. One above `maxInInterval` is an error (`ERR_ROLLGATE_COST`), because it can never fit.'() {
      const { limiter } = limiterOf({ maxInInterval: 3, countBlocked: false });
      expect(limiter.attempt('ada', { cost: 2 }).allowed).toBe(true);
      expect(limiter.attempt('ada', { cost: 2 })).toMatchObject({ allowed: false, actionsLeft: 1 });
      expect(() => limiter.attempt('ada', { cost: 4 })).toThrow(withCode('COST'));
    },
    '`cost: 0` is an error; `peek` and `usage` ask without counting.'() {
      const { limiter } = limiterOf();
      expect(() => limiter.attempt('ada', { cost: 0 })).toThrow(withCode('COST'));
      limiter.peek('ada');
      expect(limiter.usage('ada').used).toBe(0);
    },
    '`refund` and `settle` take the Decision object of `attempt` or `wait`, not an id and not a copy, and work once.'() {
      const { limiter } = limiterOf();
      const decision = limiter.attempt('ada');
      expect(() => limiter.refund('ada')).toThrow(withCode('DECISION'));
      expect(() => limiter.refund({ ...decision })).toThrow(withCode('DECISION'));
      expect(() => limiter.settle('ada', 0)).toThrow(withCode('DECISION'));
      expect([limiter.refund(decision), limiter.settle(decision, 0)]).toEqual([true, false]);
    },
    '`wait` counts no refusals, whatever `countBlocked` says, and serves one id first come, first served.':
      async () => {
        const { limiter } = limiterOf({ interval: 20, ...ONE, clock: undefined });
        const served = [];
        const serve = (name) => limiter.wait('ada').then(() => served.push(name));
        await Promise.all(['first', 'second', 'third'].map(serve));
        expect(served).toEqual(['first', 'second', 'third']);
        expect(limiter.stats().blocked).toBe(0);
      },
    'Fake timers do not move a limiter; the option `clock` does.'() {
      const { limiter: real } = limiterOf({ interval: 3_600_000, ...ONE, clock: undefined });
      real('ada');
      jest.useFakeTimers();
      jest.advanceTimersByTime(3_600_000);
      const timeLeft = real('ada');
      jest.useRealTimers();
      expect(timeLeft).toBeGreaterThan(0);
      const { hand, limiter } = limiterOf(ONE);
      limiter('ada');
      hand.now = 1000;
      expect(limiter('ada')).toBe(0);
    },
  },

  Ids: {
    'An id is a string, a finite number or a bigint. Objects, arrays, booleans, symbols and NaN are errors (`ERR_ROLLGATE_ID`), so pass `user.id`, not `user`.'() {
      const { limiter } = limiterOf();
      for (const id of ['ada', 7, -1.5, 7n]) expect(limiter(id)).toBe(0);
      for (const id of [{}, ['ada'], true, Symbol('ada'), Number.NaN, Infinity]) {
        expect(() => limiter(id)).toThrow(withCode('ID'));
      }
    },
    "`1`, `1n` and `'1'` are one id. `'Ada'` and `'ada'` are two."() {
      const { limiter } = limiterOf();
      expect([limiter(1), limiter(1n), limiter('1')]).toEqual([0, 0, 1000]);
      expect([limiter('Ada'), limiter('Ada'), limiter('ada')]).toEqual([0, 0, 0]);
    },
    "`undefined`, `null` and `''` are one id, that of all callers without one: `limiter(req.user?.id)` limits all visitors together."() {
      const { limiter } = limiterOf();
      expect([limiter(undefined), limiter(null), limiter('')]).toEqual([0, 0, 1000]);
    },
  },

  Errors: {
    'Errors have a `code` that begins with `ERR_ROLLGATE_`; compare that, not the message. Wrong input is a TypeError or a RangeError.'() {
      const { limiter } = limiterOf();
      expect(() => limiterOf({ interval: -1 })).toThrow(RangeError);
      expect(() => limiterOf({ interval: 'x' })).toThrow(TypeError);
      expect(() => limiterOf({ interval: -1 })).toThrow(withCode('OPTION'));
      expect(() => limiter('ada', 'done')).toThrow(withCode('CALLBACK'));
      expect(() => limiter.attempt('ada', { cost: 1.5 })).toThrow(withCode('COST'));
    },
    'A synchronous call throws its error; with a callback, the error is the first argument; a method that returns a promise rejects.':
      async () => {
        const { limiter } = limiterOf();
        expect(() => limiter({})).toThrow(withCode('ID'));
        const error = await new Promise((resolve) => limiter({}, resolve));
        expect(error).toEqual(withCode('ID'));
        await expect(limiter.limit({})).rejects.toEqual(withCode('ID'));
      },
  },
};
