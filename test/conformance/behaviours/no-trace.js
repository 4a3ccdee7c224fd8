// Behaviours: what records nothing, and so leaves no trace.
'use strict';

const RateLimiter = require('../../..');
const { ATTEMPT_OR_REFUSE } = require('../../../lib/base/internal-methods');

const MONTH = { limits: [{ calendar: 'month', maxInInterval: 4 }] };

/** Calls that record nothing, whatever is used. */
const LOOKS = {
  peek: (limiter) => limiter.peek('a'),
  'a peek at more': (limiter) => limiter.peek('a', { cost: 3 }),
  usage: (limiter) => limiter.usage('a'),
  wouldLimit: (limiter) => limiter.wouldLimit('a'),
  wouldLimitWithInfo: (limiter) => limiter.wouldLimitWithInfo('a'),
  'a limit of 0': (limiter) => limiter.attempt('a', { limits: 0 }),
  'a cost above the limit of the call': (limiter) => limiter.attempt('a', { limits: 2, cost: 3 }),
  'a cost that never passes': (limiter) => limiter[ATTEMPT_OR_REFUSE]('a', { cost: 5 }),
};

const REFUSALS = {
  attempt: (limiter) => limiter.attempt('a'),
  'an attempt at more': (limiter) => limiter.attempt('a', { cost: 2 }),
  call: (limiter) => limiter('a'),
  attemptMany: (limiter) => limiter.attemptMany(['a', 'a']),
  attemptAll: (limiter) => RateLimiter.attemptAll([{ limiter, id: 'a' }]),
};

const fill = (limiter) => limiter.attempt('a', { cost: 4 });
const offend = async (limiter) => {
  await fill(limiter);
  await limiter('a');
};

/** What happens before; `inBlock`: then refusals leave no trace even if refusals count. */
const STORIES = [
  { prepare: fill },
  { minDifference: 3_600_000, prepare: (limiter) => limiter.attempt('a') },
  { blockFor: [100_000, 300_000], prepare: offend, inBlock: true },
  { prepare: (limiter) => limiter.block('a', 100_000), inBlock: true },
];

module.exports = {
  // Kills: an entry that a look creates; a wait of 0 for what never passes.
  async 'peeks, and attempts that no count lets in, create nothing'({ make, stateOf, algorithm }) {
    for (const options of algorithm === 'fixed-window' ? [{}, MONTH] : [{}]) {
      const limiter = make({ maxInInterval: 4, blockFor: 1000, ...options });
      const { keys } = limiter.stats();
      for (const [what, look] of Object.entries(LOOKS)) {
        await look(limiter);
        expect([what, await stateOf('a')]).toEqual([what, undefined]);
      }
      expect(limiter.stats()).toMatchObject({ keys });
      expect(await limiter.attempt('a', { cost: 4 })).toMatchObject({ allowed: true });
    }
  },

  // Kills: a refusal that is written; an expiry that a refusal moves.
  async 'peeks and refusals that do not count change nothing'(suite) {
    const { make, at, stateOf, algorithm } = suite;
    const stories = [
      ...STORIES,
      ...STORIES.filter(({ inBlock }) => inBlock && suite.countBlocked).map((story) => {
        return { ...story, countBlocked: true };
      }),
      ...(algorithm === 'fixed-window' ? [{ ...MONTH, prepare: fill }] : []),
    ];
    for (const { prepare, inBlock, ...options } of stories) {
      const limiter = make({ maxInInterval: 4, ...options });
      at(0);
      await limiter.attempt('b', { limits: 0 }); // states of limits of calls may have a form of their own
      await prepare(limiter);
      const [state, { bytes, keys }] = [await stateOf('a'), limiter.stats()];
      at(1_000_000);
      for (const [what, call] of Object.entries({ ...LOOKS, ...REFUSALS })) {
        await call(limiter);
        expect([what, options, await stateOf('a')]).toEqual([what, options, state]);
      }
      expect(limiter.stats()).toMatchObject({ bytes, keys });
    }
  },
};
