// The runs of the models: broken variants, which must violate a promise, and right ones, which must not.

const oneHolder = { H: 1, L: 2, M: 1, Q: 2, DUP: 1, BACK: 0 };
const twoHolders = { ...oneHolder, H: 2, DUP: 0 };
const slots = { MAX: 1, M: 1, Q: 2, DUP: 1, BACK: 1 };

const upTo = (last) => Array.from({ length: last }, (_, index) => index + 1);

const leasesBroken = upTo(12).map((number) => [
  `leases-broken-${number}`,
  { model: 'leases', settings: { ...oneHolder, BROKEN: number }, isBroken: true },
]);

/** What a violation needs more than `slots` has. 2 has none while the state is kept: see slots-recreate. */
const NEEDS = { 3: { M: 2, DUP: 0 }, 4: { MAX: 2, DUP: 0 } };
const slotsBroken = [1, 3, 4, 5, 6, 7, 8, 9, 10].map((number) => [
  `slots-broken-${number}`,
  {
    model: 'slots',
    settings: { ...slots, BACK: 0, ...NEEDS[number], BROKEN: number },
    isBroken: true,
  },
]);

/**
 * By name. `settings` are the definitions of the model. A run with `megabytes`, the most memory that
 * it may take, is large: it is not part of `npm run test:all`.
 *
 * @type {[string, { model: 'leases' | 'slots', settings: Record<string, number>,
 *   isBroken?: boolean, megabytes?: number }][]}
 */
export const RUNS = [
  ...leasesBroken,
  [
    'leases-too-many-steps',
    { model: 'leases', settings: { ...oneHolder, ERR: 2 }, isBroken: true },
  ],
  ...slotsBroken,
  [
    'slots-too-many-steps',
    { model: 'slots', settings: { ...slots, BACK: 0, ERR: 2 }, isBroken: true },
  ],

  ['leases-one-all', { model: 'leases', settings: { ...oneHolder, BACK: 1 } }],
  ['leases-one-lost', { model: 'leases', settings: { ...oneHolder, LOST: 1 } }],
  [
    'leases-one-giveback',
    { model: 'leases', settings: { ...oneHolder, GIVEBACK: 1, M: 2, DUP: 0, DRIFT: 0 } },
  ],
  ['slots-one', { model: 'slots', settings: slots }],
  ['slots-recreate', { model: 'slots', settings: { ...slots, BROKEN: 2, LEAKS: 0 } }],

  [
    'slots-max2',
    { model: 'slots', settings: { ...slots, MAX: 2, DUP: 0, BACK: 0 }, megabytes: 1000 },
  ],
  [
    'slots-two-messages',
    { model: 'slots', settings: { ...slots, M: 2, BACK: 0, LEAKS: 0 }, megabytes: 1500 },
  ],
  ['leases-two-steps', { model: 'leases', settings: { ...twoHolders, DRIFT: 0 }, megabytes: 1000 }],
  [
    'leases-one-larger',
    {
      model: 'leases',
      settings: { ...oneHolder, N: 3, I: 4, D: 3, DUP: 0, BACK: 1 },
      megabytes: 1500,
    },
  ],
  [
    'leases-two-back',
    { model: 'leases', settings: { ...twoHolders, BACK: 1, DRIFT: 0, ERR: 0 }, megabytes: 4000 },
  ],
  ['leases-two-all', { model: 'leases', settings: twoHolders, megabytes: 6000 }],
  [
    'leases-one-all-two-messages',
    { model: 'leases', settings: { ...oneHolder, L: 3, M: 2, Q: 3 }, megabytes: 6000 },
  ],
];
