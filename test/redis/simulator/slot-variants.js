// Broken variants of slots, each of which holds more than `max`: a simulation has to find them.
'use strict';

const STORE = 'lib/stores/redis/slots.js';
const CONFIRMED = 'lib/stores/redis/confirmed-holds.js';
const COMMANDS = 'lib/stores/redis/slot-commands.js';
const CLOCK = 'lib/stores/redis/clocks.js';

const inLib = (name, file, ...changes) => ({ name, lib: { [file]: changes } });
const inScript = (name, ...changes) => ({ name, scripts: { slots: changes } });

const SLOT_VARIANTS = [
  inLib('belief has no margin for drift', CONFIRMED, ['BELIEVED_FOR = 7 / 8', 'BELIEVED_FOR = 1']),
  inLib('a slot ends by the shortest time', CLOCK, ['Math.max(', 'Math.min(']),
  inLib('a slot is lost only if the server says so', CONFIRMED, [
    'if (this.#held.size === 0 || !this.isTooOld(this.#earliest, now)) return;',
    'return;',
  ]),
  inLib('belief counts from the answer', STORE, [
    'this.#held.add(hold, sentAt);',
    'this.#held.add(hold, readClocks());',
  ]),
  inLib('a grant is taken however late it comes', STORE, [
    'this.#closing === undefined && this.#held.isTooOld(sentAt)',
    'false',
  ]),
  inLib('a renewal counts from its answer', CONFIRMED, [
    'else if (sentAt.boot > hold.sentAt.boot) hold.sentAt = sentAt;',
    'else hold.sentAt = readClocks();',
  ]),
  inLib('a renewal that failed confirms', STORE, [
    'else this.#errors++;\n    });',
    'else done(holds, () => false);\n    });',
  ]),
  inLib('numbers of tokens are used again', COMMANDS, [
    'this.#lastNumber += 1;',
    'this.#lastNumber = (this.#lastNumber + 1) % 4;',
  ]),
  inLib('all processes have one name', COMMANDS, ['randomBytes(8)', 'Buffer.alloc(8)']),
  inScript('no guard', ['GUARD = 1000', 'GUARD = 0']),
  inScript('a new token ends without the guard', ['now + ttl + GUARD, token', 'now + ttl, token']),
  inScript('a release frees what it does not find', [
    'elseif answer == 1 then',
    'elseif answer <= 1 then',
  ]),
  inScript('a key expires before its tokens', [
    'lifetime = math.max(lifetime, ttl + GUARD + KEPT)',
    'lifetime = math.max(lifetime, ttl / 2)',
  ]),
];

module.exports = { SLOT_VARIANTS };
