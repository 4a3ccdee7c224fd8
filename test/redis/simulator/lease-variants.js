// Broken variants of leases, each of which uses more than the limits: a simulation has to find them.
'use strict';

const LEASES = 'lib/stores/redis/leases/index.js';
const LEASED_ID = 'lib/stores/redis/leases/leased-id.js';
const CLOCKS = 'lib/stores/redis/clocks.js';
const REQUESTS = 'lib/stores/redis/leases/requests.js';

const inLib = (name, file, ...changes) => ({ name, lib: { [file]: changes } });
const inScript = (name, ...changes) => ({ name, scripts: { 'sliding-window-log': changes } });

const AGES = 'Math.max(0, sentAt.steady - at) * TRUSTED * 1000';

const LEASE_VARIANTS = [
  inLib('a lease ends by the shortest time', CLOCKS, ['Math.max(', 'Math.min(']),
  inLib('a lease ends without a margin for drift', LEASED_ID, [
    'this.age(now) >= this.#length * TRUSTED',
    'this.age(now) >= this.#length',
  ]),
  inLib('a lease begins with the reply', REQUESTS, [
    'leased.open(wanted, permits, numbers[NUMBERS.AT], sentAt);',
    'leased.open(wanted, permits, numbers[NUMBERS.AT], { ...this.#readClocks() });',
  ]),
  inLib('a lease ends only when it is settled', LEASED_ID, [
    'this.age(now) >= this.#length * TRUSTED',
    'false',
  ]),
  inLib('ages have no margin for drift', REQUESTS, [
    AGES,
    'Math.max(0, sentAt.steady - at) * 1000',
  ]),
  inLib('ages are longer than they are', REQUESTS, [
    AGES,
    'Math.max(0, sentAt.steady - at) / TRUSTED * 1000',
  ]),
  {
    name: 'ages are by a clock that jumps',
    lib: {
      [LEASES]: [
        [
          '? this.#use(leased, cost, isFull, times.steady)',
          '? this.#use(leased, cost, isFull, times.wall)',
        ],
        [
          'numbers = this.#use(leased, cost, isFull, times.steady)',
          'numbers = this.#use(leased, cost, isFull, times.wall)',
        ],
      ],
      [REQUESTS]: [[AGES, AGES.replace('steady', 'wall')]],
    },
  },
  inLib('a part of a lease has the age of its first use', LEASED_ID, ['last.at = at;', '']),
  inLib('a lease is used on after it is settled', LEASED_ID, [
    'this.number = NONE;\n    this.balance = 0;',
    '',
  ]),
  inLib('what was not used comes back to the next lease', LEASES, [
    'const { leased } = uses;',
    'const { leased } = uses; if (uses.request && leased.number !== NONE) leased.balance += cost - actual;',
  ]),
  inLib('some uses are not settled', REQUESTS, [
    '...uses.flatMap(',
    '...uses.slice(0, -1).flatMap(',
  ]),
  inLib('a number is used again after a failure', REQUESTS, [
    'leased.giveUp(wanted);',
    '{ leased.giveUp(wanted); this.#lastNumber = wanted - 1; }',
  ]),
  inLib('a lease has what was wanted', LEASED_ID, [
    'this.balance = permits;',
    'this.balance = Math.max(this.wanted, permits);',
  ]),
  inScript('no guard', ['GUARD = 1000000', 'GUARD = 0']),
  inScript('uses are not later than the end of their lease, without the guard', [
    'lease.ends + GUARD or at',
    'lease.ends or at',
  ]),
  inScript('a lease is found by its holder', ['lease.number == number and ', '']),
  inScript('leased permits do not count', ['(leases and leasing.permits(window, at) or 0)', '0']),
  inScript('a lease counts until it ends', [
    'at < leases[l].ends + GUARD + window.interval',
    'at < leases[l].ends + GUARD',
  ]),
  inScript('a lease is dropped when it ends', [
    'local over = leases[l].ends + GUARD + longest_window',
    'local over = leases[l].ends + GUARD',
  ]),
  inScript('a lease needs room in the first window only', [
    'for w = 1, window_count do left = min',
    'for w = 1, 1 do left = min',
  ]),
];

module.exports = { LEASE_VARIANTS };
