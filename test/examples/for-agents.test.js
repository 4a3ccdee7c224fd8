// docs/for-agents.md: which tests show that its statements hold.
'use strict';

const { readPage } = require('../support/page-programs');

/** By statement: the tests that fail if it does not hold, as 'file: title', or 'file: title # row # row' where some rows do. */
const PROOFS = {
  '`limiter(id)` returns the milliseconds to wait, and `0` means allowed: `if (limiter(id))` is true for a refusal.':
    ['test/lib/calls.test.js: that needs no this and goes where functions go'],
  '`attempt(id)` returns an object, for a refusal too: look at its `allowed`.': [
    'test/conformance/behaviours/windows.js: allows maxInInterval actions and refuses the next; a Decision has six facts',
  ],
  '`await limiter.limit(id)` is `true` if the action was refused.': [
    'test/conformance/behaviours/calls.js: limit and wouldLimit promise whether it is blocked',
  ],
  'A refusal is a result: nothing throws, and no promise rejects.': [
    'test/conformance/behaviours/windows.js: allows maxInInterval actions and refuses the next; a Decision has six facts',
    'test/conformance/behaviours/calls.js: limit and wouldLimit promise whether it is blocked',
    'test/conformance/behaviours/calls.js: calls back with timeLeft and actionsLeft or an error, never in the same tick',
  ],
  'A refused attempt is allowed exactly `timeLeft` later, and not a millisecond before, if nothing else is attempted meanwhile.':
    ['test/conformance/traces.test.js: refused until timeLeft, allowed exactly at it'],
  '`limit`, `wouldLimit`, `limitWithInfo`, `wait`, `block`, `clear`, `clearAll` and `close` return promises in memory, too. `setLimits` and `stats` do not.':
    [
      'test/conformance/behaviours/calls.js: decisions come at once or as promises, by the store; other calls promise',
      'test/conformance/behaviours/calls.js: stats count attempts and not peeks',
      'test/conformance/behaviours/limits-that-change.js: new limits apply from the next call on',
    ],
  'With a callback, `limiter(id, callback)` returns nothing, and calls `callback(error, timeLeft, actionsLeft)` in a later tick.':
    [
      'test/conformance/behaviours/calls.js: calls back with timeLeft and actionsLeft or an error, never in the same tick',
    ],
  '`peek` returns what an attempt would: with a limit of 3 and nothing used, its `actionsLeft` is 2. Where refused attempts count, its `timeLeft` includes that; `usage(id).timeLeft` is the time without another attempt.':
    [
      'test/conformance/behaviours/no-trace.js: peeks, and attempts that no count lets in, create nothing',
      'test/conformance/traces.test.js: answers as the oracle: %s',
      'test/conformance/traces.test.js: customers who change between two plans: %s',
    ],
  "The package itself, and its default export, is `RateLimiter`, which creates limiters. The middleware is `const { rateLimit } = require('rollgate')` or `import { rateLimit } from 'rollgate'`. `RateLimiter({ windowMs, limit })` is an error.":
    [
      "test/lib/loading.test.js: %s gives %s by require and import # ['rollgate', 'RateLimiter', NAMES",
      "test/lib/options.test.js: %s is refused as one of the middleware, with the hint %s # ['windowMs', 'interval']",
    ],
  "Durations are numbers of milliseconds: `'1000'`, `'1m'` and `'60s'` are errors, and 60 is 60 ms.":
    [
      "test/lib/options.test.js: %s: %p is a TypeError # wrongType: ['1000', '60s'",
      "test/lib/calls.test.js: makes the same limiter %s # ['without new'",
    ],
  'Unknown options are errors, not ignored: `points`, `duration`, `max`, `tokensPerInterval`, `reservoir`, `minTime`.':
    [
      "test/lib/options.test.js: %s is refused with the hint %s # ['points', ' # ['duration', ' # ['tokensPerInterval', ' # ['reservoir', ' # ['minTime', '",
      'test/lib/options.test.js: %s of the middleware is known to be one',
    ],
  '`undefined` means that an option is not set. So with `redis: process.env.REDIS_URL`, a limiter counts in memory where the variable is missing.':
    [
      'test/lib/options.test.js: that is undefined is as good as left out',
      'test/redis/options.test.js: not a namespace and onError beside %p, a limiter in memory # [{ redis: undefined }, {}]',
    ],
  '`maxInInterval: 0` is an error. `limit: 0` of `rateLimit`, and `limits: 0` of a call, refuse everything.':
    [
      'test/lib/options.test.js: %s: %p is a RangeError # outOfRange: [0, -1, 0.5',
      'test/middleware/beside-express-rate-limit.test.js: limit 0',
      'test/lib/call-limits.test.js: of %j refuses at %j for %p ms # maxInInterval: 2 }, 0, 11]',
    ],
  "A window of a calendar day or month (`calendar: 'month'` in place of `interval`, in an entry of `limits`) requires `algorithm: 'fixed-window'`.":
    ["test/lib/calendar-limits.test.js: require the algorithm 'fixed-window'"],
  '`RateLimiter` counts refused attempts (`countBlocked` is `true` by default), so a client that tries again too early stays refused.':
    [
      'test/conformance/behaviours/windows.js: refusals count by default, if they can',
      'test/conformance/traces.test.js: answers as the oracle: %s',
    ],
  'Windows roll: there is no moment at which the count begins again at 0. Each action leaves `interval` ms after it happened.':
    [
      'test/conformance/traces.test.js: answers as the oracle: %s',
      'test/lib/calls.test.js: the methods of its names give the same answers on random traces',
    ],
  '`resetIn` is the time until there is more room, not until all room is back.': [
    'test/conformance/traces.test.js: answers as the oracle: %s',
  ],
  "Only the default algorithm never allows more than the limit in any interval: `'fixed-window'` allows twice the limit around a boundary, and `'gcra'` nearly twice.":
    [
      'test/conformance/traces.test.js: never allows more than the rule, however many calls are made at once',
      'test/conformance/traces.test.js: the rule of %s can be kept and broken',
      'test/examples/start-page.test.js: two bursts around a boundary pass a fixed window, and no other algorithm',
      "test/lib/algorithms.test.js: %s allows up to %i of 10 within an interval # ['sliding-window-log', 10] # ['fixed-window', 20] # ['gcra', 19]",
    ],
  'A `cost` that does not fit is refused as a whole. One above `maxInInterval` is an error (`ERR_ROLLGATE_COST`), because it can never fit.':
    [
      'test/conformance/behaviours/no-trace.js: peeks and refusals that do not count change nothing',
      'test/conformance/traces.test.js: answers as the oracle: %s',
      'test/conformance/behaviours/errors.js: a wrong argument is an error, and nothing is counted',
    ],
  '`cost: 0` is an error; `peek` and `usage` ask without counting.': [
    'test/conformance/behaviours/errors.js: a wrong argument is an error, and nothing is counted',
    'test/conformance/behaviours/no-trace.js: peeks, and attempts that no count lets in, create nothing',
  ],
  '`refund` and `settle` take the Decision object of `attempt` or `wait`, not an id and not a copy, and work once.':
    [
      "test/conformance/behaviours/errors.js: another limiter's decision is refused, and a copy of its own, also where one settles by name",
      'test/conformance/behaviours/errors.js: a wrong argument is an error, and nothing is counted',
      'test/lib/costs.test.js: of the decision of another limiter or of none names settle',
      'test/conformance/behaviours/waiting.js: a call is let in at once if there is room, with a decision that can be refunded',
      'test/conformance/behaviours/costs.js: a settled attempt has the cost that it came to, once; at 0 it is refunded',
    ],
  '`wait` counts no refusals, whatever `countBlocked` says, and serves one id first come, first served.':
    [
      'test/conformance/behaviours/waiting.js: waiting records nothing: no refusal counts, and no block begins',
      'test/conformance/behaviours/waiting.js: calls are let in when timeLeft has passed, in their order, whatever they cost',
    ],
  'Fake timers do not move a limiter; the option `clock` does.': [
    'docs/testing.md: fake timers move a limiter whose clock reads Date',
  ],
  'An id is a string, a finite number or a bigint. Objects, arrays, booleans, symbols and NaN are errors (`ERR_ROLLGATE_ID`), so pass `user.id`, not `user`.':
    [
      'test/conformance/behaviours/errors.js: a wrong argument is an error, and nothing is counted',
      'test/conformance/behaviours/calls.js: a number, a bigint and their string are one id; undefined, null and "" are another',
    ],
  "`1`, `1n` and `'1'` are one id. `'Ada'` and `'ada'` are two.": [
    'test/conformance/behaviours/calls.js: a number, a bigint and their string are one id; undefined, null and "" are another',
    'test/conformance/behaviours/calls.js: different strings are different ids',
  ],
  "`undefined`, `null` and `''` are one id, that of all callers without one: `limiter(req.user?.id)` limits all visitors together.":
    [
      'test/conformance/behaviours/calls.js: a number, a bigint and their string are one id; undefined, null and "" are another',
    ],
  'Counts in memory belong to one limiter object: n processes allow n times the limit, and a limiter that is created in a request handler refuses nobody. Create one per purpose, outside of handlers; it serves all ids.':
    [
      'test/lib/calls.test.js: copies the options, also frozen, inherited and those of an object without a prototype',
      'test/lib/lifetime.test.js: each thread counts for itself, and the main thread is not disturbed',
      'test/conformance/behaviours/calls.js: different strings are different ids',
    ],
  'In memory and with `shared`, `limiter(id)` and `attempt(id)` return the result at once; with `redis` and `kv`, they return a promise of it. Without `await`, `limiter(id) === 0` and `limiter(id) > 0` are both false there, so nobody is refused.':
    [
      'test/conformance/behaviours/calls.js: decisions come at once or as promises, by the store; other calls promise',
    ],
  'On Redis, limiters share their counts only if they have the same `namespace`; without one, each has a random one. `kv` requires it.':
    [
      'test/redis/calls.test.js: limiters of one namespace count together',
      'test/redis/keys.test.js: begin with a random namespace where none is given',
      "test/kv/stores.test.js: %s: %j # ['namespace', undefined, TypeError",
    ],
  'Creating a limiter does no I/O: with a Redis that is down, it succeeds, and the first call fails.':
    [
      'test/redis/native-connection.test.js: connects, the constructor does not',
      'test/redis/native-connection.test.js: finds out that a host does not exist, the constructor does not',
    ],
  "If Redis fails, the call fails by default (`onError: 'throw'`); nothing is allowed or refused by itself. `'allow'` allows, `'block'` refuses, `'memory'` counts in this process.":
    [
      'test/middleware/stores.test.js: without its server, requests fail, pass or are decided by onError; rules: %j',
      'test/redis/lifetime.test.js: a program ends by itself # with a connection that is tried again and again',
      "test/redis/on-error.test.js: 'allow' allows as if every id were new",
      "test/redis/on-error.test.js: 'block' refuses for a second",
      "test/redis/on-error.test.js: 'memory' decides in memory until Redis answers again",
    ],
  "`onError` is for stores, not for mistakes: with `'allow'`, a wrong id or cost is an error, too.":
    [
      "test/redis/on-error.test.js: '%s' softens decisions, never mistakes of the program # [['allow'], ['block']",
    ],
  'A full limiter forgets: in memory, after `maxKeys` ids (1,000,000 by default), a new id replaces the one nearest to expiry, which then begins at 0.':
    [
      'test/memory/table_test.cc: DropsTheIdNearestToExpiryWhateverHappenedBefore',
      'test/lib/channels.test.js: are published on rollgate:evicted, from the first one on',
      'test/lib/channels.test.js: are those beyond a million by default',
    ],
  '`shared` is for Linux and needs the native addon; `redis` with a URL needs it, too. Elsewhere they are errors (`ERR_ROLLGATE_UNSUPPORTED`), and `redis` takes a client of ioredis or node-redis.':
    [
      'test/shared/regions.test.js: where the addon was built without it, construction says what it needs',
      'test/wasm/choice.test.js: what needs it is refused, with the alternative',
      'test/wasm/choice.test.js: a client of Redis is asked',
      "test/redis/options.test.js: a user's client and a limiter in memory are not, and a wrong option is named first",
    ],
  "`lease` is refused together with `RateLimiter`'s default: it requires `countBlocked: false`.": [
    "test/redis/leases.test.js: is refused %s # ['with the default'",
  ],
  'Permits that one process holds and does not use count as used for all others. `close()` gives them back, so close such a limiter before the program ends.':
    [
      'test/redis/leases.test.js: an attempt on a lease ends in the same turn, and other processes see its permits as used',
      'test/redis/leases.test.js: a peek is decided here where the balance suffices; usage asks Redis',
    ],
  'A limiter does not keep a program running, also on Redis, and need not be closed for that.': [
    'test/lib/lifetime.test.js: with calls that are waited for and called back',
    'test/redis/lifetime.test.js: a program ends by itself # with a limiter never used',
  ],
  'A pending `wait` keeps the program running until it is allowed.': [
    'test/lib/lifetime.test.js: with calls that are waited for and called back',
  ],
  'After `close()`, every call fails with `ERR_ROLLGATE_CLOSED`, and what waits is rejected with it. A second `close()` is no error.':
    [
      'test/conformance/behaviours/calls.js: a closed limiter refuses every call, and closing twice is fine',
      'test/conformance/behaviours/waiting.js: close ends waiting',
    ],
  'Your own client of Redis stays open after `close()`: end it yourself.': [
    'test/redis/lifetime.test.js: a program ends by itself # when a client of its own is closed, which its limiter leaves open',
  ],
  '`rateLimit()` without options allows 5 requests a minute.': [
    "test/middleware/beside-express-rate-limit.test.js: %s # ['the defaults', {}]",
  ],
  '`rateLimit`, `rateLimitFetch` and the Fastify plugin do not count refused requests (`countBlocked` is `false` by default).':
    [
      'test/middleware/adapters.test.js: rateLimit, rateLimitFetch and the Fastify plugin do not count refusals by default',
    ],
  'The default key is the address of the connection, and `X-Forwarded-For` is not believed: behind a proxy, all clients share one count until the proxy is trusted (`app.set("trust proxy", 1)`, or `trustProxy: 1` of `rateLimit`).':
    [
      "test/middleware/clients.test.js: %p gives the key %s # [undefined, '127.0.0.1', ['ROLLGATE_X_FORWARDED_FOR']] # [1, '198.51.100.7', []]",
      "test/middleware/clients.test.js: %s has the key %s, which is the default key # const OTHERS = ['192.0.2.1'",
    ],
  'With `trust proxy` or `trustProxy` set to `true`, a client chooses its address, and is never limited.':
    [
      "test/middleware/clients.test.js: %p gives the key %s # [true, '192.0.2.66', ['ROLLGATE_TRUST_PROXY']]",
    ],
  'IPv6 addresses of one /56 are one client; `ipv6Subnet: false` counts each address.': [
    "test/middleware/clients.test.js: %s has the key %s, which is the default key # '2001:db8:1:200::/56']",
    'test/middleware/clients.test.js: %p may be a value or come from a function # [false, ip]',
  ],
  'A `keyGenerator` that returns `req.ip` loses the /56. Call its third argument, `clientKey()`, for the default key.':
    [
      "test/middleware/clients.test.js: a keyGenerator with the parameter clientKey, %j and %j: %s # [{}, { ip: '2001:db8::1' }, '2001:db8::/56']",
      "test/middleware/clients.test.js: comes for keyGenerator %s: %p # [(req) => req.ip, ['ROLLGATE_BARE_IP_KEY']]",
    ],
  'All keys of a limiter are in one space, so a user whose id is an address shares the count of that address: give ids of users a prefix.':
    [
      "test/middleware/clients.test.js: a keyGenerator with the parameter clientKey, %j and %j: %s # { 'x-user': '2001:db8::1' } }, '2001:db8::1']",
      "test/middleware/clients.test.js: %s has the key %s, which is the default key # const OTHERS = ['192.0.2.1'",
    ],
  'Each call of `rateLimit` counts for itself. One middleware that is mounted twice counts a request twice.':
    [
      'test/middleware/errors.test.js: is one warning: %s # by one middleware used twice # not in two limiters',
      'test/middleware/errors.test.js: has both counts',
    ],
  'By default, `X-RateLimit-*` headers are sent and the standard ones are not. `Retry-After` and the headers are in seconds, `timeLeft` is in milliseconds.':
    [
      "test/middleware/beside-express-rate-limit.test.js: %s # ['the defaults', {}]",
      'test/middleware/fetch.test.js: handler gives the response of a refusal',
    ],
  'A request whose `cost` is above the limit is refused without `Retry-After`, because it can never pass. `attempt` throws for such a cost.':
    [
      "test/middleware/costs.test.js: cost as %s is what the request uses, unless it can never pass # ['a function', {",
      'test/conformance/behaviours/errors.js: a wrong argument is an error, and nothing is counted',
    ],
  'If the store or one of your functions fails, the error goes to `next`: the request neither passes nor gets 429. `passOnStoreError: true` lets it pass if the store failed, but not if the key is no id.':
    [
      "test/middleware/errors.test.js: in %s # ...ofEach('keyGenerator'), # ['the limiter, later'",
      'test/middleware/errors.test.js: lets requests pass, without headers',
      'test/middleware/errors.test.js: leaves the errors of other functions, and keys that are no ids',
    ],
  'With `skipSuccessfulRequests`, a request counts until its response is finished, and is taken back then if it succeeded: so simultaneous requests cannot exceed the limit.':
    [
      'test/middleware/disconnects.test.js: of eight logins that are cancelled, three reach the password check',
      "test/middleware/disconnects.test.js: with %s, an answer of %i leaves a count of %i # ['skipSuccessfulRequests', 200, 0] # ['skipSuccessfulRequests', 401, 1]",
    ],
  '`ConcurrencyLimiter` limits what runs at once, `RateLimiter` how often something begins: `maxInInterval: 1` does not keep two actions from running at the same time.':
    [
      'test/slots/behaviours.js: as many are held at once as may be, and a refusal changes nothing',
      'test/conformance/traces.test.js: answers as the oracle: %s',
    ],
  '`acquire` does not wait: it returns a Slot or a refusal, and both are truthy objects. A refusal has no `release`, so look at `allowed` first. `wait` and `run` wait.':
    [
      'test/slots/behaviours.js: as many are held at once as may be, and a refusal changes nothing',
      'test/slots/behaviours.js: release is a method of the slot: true once, and nothing that a refusal has',
      'test/slots/behaviours.js: a slot goes to those that wait, in their order',
      'test/slots/behaviours.js: run holds a slot as long as its function runs, however that ends',
    ],
  'A slot that is not released stays held: no time-out is set by default (`maxAge`). `run` releases it however its function ends.':
    [
      'test/slots/behaviours.js: without maxAge, a slot is held for ever',
      'test/slots/behaviours.js: run holds a slot as long as its function runs, however that ends',
    ],
  'Call `release` as a method: `once("close", slot.release)` throws, `once("close", () => slot.release())` does not. It is `true` once, and `false` later.':
    [
      'test/slots/behaviours.js: release is a method of the slot: true once, and nothing that a refusal has',
    ],
  'A slot that is lost, for example by `maxAge` or `clear`, does not stop its action: `slot.lost` is an AbortSignal that says so.':
    [
      'test/slots/behaviours.js: a slot that is older than maxAge is lost',
      'test/slots/behaviours.js: clear loses the slots of an id, and clearAll all',
    ],
  '`run` within `run` of the same id waits for itself if no slot is left; a `deadline` ends that.':
    ['test/slots/behaviours.js: run within run waits for a slot of its own'],
  'In memory, a call that waits for a slot keeps the program running only if it has a `deadline`, the limiter a `maxAge`, or, for up to 30 s, other calls in line another `priority`, unlike `wait` of a rate limiter.':
    [
      "test/slots/lifetime.test.js: a waiting call keeps a program up until maxAge or its deadline, if any: %j, %j # [{}, {}, 'nothing'] # [{ maxAge: 50 }, {}, 'a slot'] # [{}, { deadline: 50 }, 'ERR_",
      'test/lib/lifetime.test.js: with calls that are waited for and called back',
    ],
  'On Redis, `acquire`, `usage` and `release` return promises.': [
    'test/slots/behaviours.js: slots and usage come at once or as promises, by the store, and releases with them',
  ],
  'A refusal of `concurrencyLimit` has no `Retry-After`: nobody knows when a slot will be free.': [
    'test/slots/adapters.test.js: refuses what is above the maximum, until a response has closed',
  ],
  'Errors have a `code` that begins with `ERR_ROLLGATE_`; compare that, not the message. Wrong input is a TypeError or a RangeError.':
    [
      'test/conformance/behaviours/errors.js: a wrong argument is an error, and nothing is counted',
      'test/lib/inputs.test.js: any value in any place is used, or refused with a code, and no other id is counted',
    ],
  'A synchronous call throws its error; with a callback, the error is the first argument; a method that returns a promise rejects.':
    [
      'test/conformance/behaviours/together.js: the answer of several comes at once or as a promise, by the store',
      "test/lib/calls.test.js: throws ERR_ROLLGATE_CALLBACK for %p and records nothing # [null], ['callback']",
      'test/conformance/behaviours/calls.js: calls back with timeLeft and actionsLeft or an error, never in the same tick',
      'test/conformance/behaviours/waiting.js: a wrong argument rejects the promise, also where other calls throw',
      "test/lib/call-limits.test.js: %s rejects options, and counts nothing # ['limit', 'wouldLimit'",
    ],
};

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Whether a source has a test of this title, not skipped, in none of its comments; and these rows of a table. */
function hasTest(source, title, rows = []) {
  const quoted = `(?:'${escaped(title)}'|"${escaped(title)}")`;
  const ways = [
    `^\\s*test\\(\\s*${quoted}`,
    `^(?!\\s*//).*\\)\\(\\s*${quoted}`, // after the table of test.each
    `^\\s*(?:async )?${quoted}(?:\\(|: )`, // a behaviour
    `^TEST(?:_[FP])?\\(\\w+, ${escaped(title)}\\)`,
  ];
  const isTest = ways.some((way) => new RegExp(way, 'm').test(source));
  return isTest && !source.includes('.skip.each(') && rows.every((row) => source.includes(row));
}

function isThere(proof) {
  const [, file, rest] = proof.match(/^(.+?): (.+)$/);
  return hasTest(readPage(file), ...splitRows(rest));
}

function splitRows(text) {
  const [title, ...rows] = text.split(' # ');
  return [title, rows];
}

// Kills: a title that only a comment or a skipped test has; a test that no way finds.
test('a title counts where a test has it', () => {
  const are = (...sources) => sources.map((source) => hasTest(source, 'a %s', ['row']));
  const tests = ["  test('a %s', run)", "])('a %s', run)", "])(\n  'a %s',\n  run)"];
  const behaviours = ["  async 'a %s'(suite) {}", "  'a %s': run", '  "a %s"(suite) {}'];
  const found = [...tests, ...behaviours].map((source) => `['row']\n${source}`);
  expect(are(...found)).toEqual(found.map(() => true));
  const others = [
    "test.skip('a %s', run)",
    "// test('a %s', run)",
    "// ])('a %s', run)",
    "test.skip.each([\n])('a %s', run)",
    "f('a %s')",
  ];
  const missing = [...others.map((source) => `['row']\n${source}`), "test('a %s', run)"];
  expect(are(...missing)).toEqual(missing.map(() => false));
  expect(hasTest('TEST_P(Table, Drops) {', 'Drops')).toBe(true);
});

// Kills: a statement that was added to the page or changed there, without a look at its tests.
test('the statements of the page are those of the table, in its order', () => {
  expect(readPage('docs/for-agents.md').match(/(?<=^- ).+$/gm)).toEqual(Object.keys(PROOFS));
});

// Kills: a test that was removed or renamed, though the page needs it.
test('each statement has tests, which are in the files that the table names', () => {
  const proofs = Object.values(PROOFS);
  expect(proofs.filter(({ length }) => length === 0)).toEqual([]);
  expect(proofs.flat().filter((proof) => !isThere(proof))).toEqual([]);
});
