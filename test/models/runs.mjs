// The runs of the models: broken variants, which must violate a promise, and right ones, which must not.

/**
 * The definitions of each model, where a run has no others. BROKEN, N, I, ERR, BACK, DUP, H, LOST and MAX are explained
 * at the heads of the models. `D`: a lease's time; `G`: the server's guard; `L`: leases that the server keeps; `M`:
 * messages on their way at once; `Q`: numbers of leases, or tokens, of a holder that exist at once; `T`: a slot's time.
 */
const DEFINITIONS = {
  leases: {
    ...{ BROKEN: 0, N: 2, I: 3, D: 2, G: 1, ERR: 1, BACK: 1, DUP: 1, H: 2, L: 3, M: 2, Q: 3 },
    LOST: 0, // how often the server may lose its state. The promise is then N * (1 + LOST)
    GIVEBACK: 0, // 1: a holder that gives up a request may settle its lease with no uses
    ...{ DRIFT: 1, SUSPEND: 1 }, // whether clocks lose and gain ticks, and stand still
  },
  slots: {
    ...{ BROKEN: 0, MAX: 1, T: 4, G: 1, ERR: 1, BACK: 1, DUP: 1, H: 2, M: 2, Q: 3 },
    LEAKS: 1, // whether the second promise is checked
  },
};

const leases = (settings, how) => runOf('leases', { BACK: 0, M: 1, Q: 2, ...settings }, how);
const oneHolder = (settings, how) => leases({ H: 1, L: 2, ...settings }, how);
const twoHolders = (settings, megabytes) => leases({ L: 2, DUP: 0, ...settings }, { megabytes });
const slots = (settings, how) => runOf('slots', { M: 1, Q: 2, ...settings }, how);
const BROKEN = { isBroken: true };

function runOf(model, settings, how = {}) {
  return { model, settings: { ...DEFINITIONS[model], ...settings }, ...how };
}

const upTo = (last) => Array.from({ length: last }, (_, index) => index + 1);

/** What a violation needs more than `slots` has. 2 has none while the state is kept: see slots-recreate. */
const NEEDS = { 3: { M: 2, DUP: 0 }, 4: { MAX: 2, DUP: 0 } };

/**
 * By name. `settings` are the definitions of the model. A run with `megabytes`, the most memory that
 * it may take, is large: it is not part of `npm run test:all`.
 *
 * @type {[string, { model: 'leases' | 'slots', settings: Record<string, number>,
 *   isBroken?: boolean, megabytes?: number }][]}
 */
export const RUNS = [
  ...upTo(12).map((n) => [`leases-broken-${n}`, oneHolder({ BROKEN: n }, BROKEN)]),
  ['leases-too-many-steps', oneHolder({ ERR: 2 }, BROKEN)],
  ...[1, 3, 4, 5, 6, 7, 8, 9, 10].map((n) => [
    `slots-broken-${n}`,
    slots({ BACK: 0, ...NEEDS[n], BROKEN: n }, BROKEN),
  ]),
  ['slots-too-many-steps', slots({ BACK: 0, ERR: 2 }, BROKEN)],

  ['leases-one-all', oneHolder({ BACK: 1 })],
  ['leases-one-lost', oneHolder({ LOST: 1 })],
  ['leases-one-giveback', oneHolder({ GIVEBACK: 1, M: 2, DUP: 0, DRIFT: 0 })],
  ['slots-one', slots({})],
  ['slots-recreate', slots({ BROKEN: 2, LEAKS: 0 })],

  ['slots-max2', slots({ MAX: 2, DUP: 0, BACK: 0 }, { megabytes: 1000 })],
  ['slots-two-messages', slots({ M: 2, BACK: 0, LEAKS: 0 }, { megabytes: 1500 })],
  ['leases-two-steps', twoHolders({ DRIFT: 0 }, 1000)],
  ['leases-one-larger', oneHolder({ N: 3, I: 4, D: 3, DUP: 0, BACK: 1 }, { megabytes: 1500 })],
  ['leases-two-back', twoHolders({ BACK: 1, DRIFT: 0, ERR: 0 }, 4000)],
  ['leases-two-all', twoHolders({}, 6000)],
  ['leases-one-all-two-messages', oneHolder({ L: 3, M: 2, Q: 3 }, { megabytes: 6000 })],
];
