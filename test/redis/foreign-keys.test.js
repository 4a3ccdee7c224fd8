// What the scripts do with keys that hold something else.
'use strict';

const { attemptOn } = require('../../lib/redis/script');
const {
  argumentsOf,
  EACH_FORM,
  KEY,
  LOG,
  policyOf,
  START_US,
  scriptsOnRedis,
} = require('../support/scripts-on-redis');

describe('a key', () => {
  const script = scriptsOnRedis();
  const { run, ttl } = script;

  describe('that is no state', () => {
    const bytes = (...numbers) => Buffer.from(numbers);
    const zeros = (length) => Buffer.alloc(length);
    const texts = [
      '',
      'x',
      '12',
      '1700000000',
      '-1',
      '1795338785335952999',
      '-0999999999999999999',
      '-9000000000000000000',
      '-9223372036854775808',
      '12345678901234567890',
      '-1.79533878533595e18',
      '-1.70000000000000e18',
      '-50000000000000000e2',
      '-0x01000000000000001',
      '-179533878533595299x',
      '-17953387853359 2999',
      '- 795338785335952999',
      'nan(abcdefghijklmno)',
      'Hello, World',
      'Dangerous goods, really!!',
      'Ünïcödé text ',
      '{"count":1,"reset":1700000000000}',
      bytes(0xb0),
      Buffer.concat([bytes(0xb0), zeros(10)]),
      Buffer.concat([bytes(0xb8), zeros(40)]),
      Buffer.concat([bytes(0xba, 1, 0), Buffer.alloc(36, 0x7f)]),
      // No moment of an attempt, none of a block, and windows that are not of one size.
      Buffer.concat([bytes(0xba, 1), zeros(9), Buffer.alloc(8, 0x7f), zeros(18)]),
      Buffer.concat([bytes(0xba, 1), zeros(17), Buffer.alloc(8, 0x7f), zeros(10)]),
      Buffer.concat([bytes(0xba, 2), zeros(25 + 15)]),
      Buffer.concat([bytes(0x44), Buffer.alloc(17, 0x20)]),
      Buffer.concat([bytes(0xff, 0xfe), zeros(10)]),
    ];
    const others = {
      list: () => script.redis.rpush(KEY, 'a'),
      hash: () => script.redis.hset(KEY, 'a', 'b'),
      set: () => script.redis.sadd(KEY, 'a'),
      'sorted set': () => script.redis.zadd(KEY, 1, 'a'),
    };
    describe.each(EACH_FORM)('%s with %s', (algorithm, _form, policy) => {
      test('is left as it is', async () => {
        // A long log cannot tell an empty text from no key before it writes.
        const seen = algorithm === LOG ? texts.slice(1) : texts;
        const makers = [
          ...seen.map((text) => () => script.redis.set(KEY, text)),
          ...Object.values(others),
        ];
        for (const make of makers) {
          await make();
          const before = await script.redis.dumpBuffer(KEY);
          for (const words of [
            ['attempt', 'brief', '', 1],
            ['attempt', 'full', START_US, 1],
            ['peek', 'brief', '', 1],
            ['refund', '5,5', '', 1],
          ]) {
            const [first] = await run(policy, ...words);
            expect([words[0], first]).toEqual([words[0], -1]);
          }
          expect(await script.redis.dumpBuffer(KEY)).toEqual(before);
          expect(await ttl()).toBe(-1);
          await script.redis.del(KEY);
        }
      });
    });

    test.each(EACH_FORM)(
      '%s with %s: the other keys of a call are judged',
      async (_a, _f, policy) => {
        const keys = [KEY, 'other', KEY, 'other'];
        for (const [detail, length] of [
          ['brief', 1],
          ['full', 7 + 2 * policy.limits.length],
        ]) {
          await script.redis.rpush(KEY, 'a');
          const [sha1, , , ...words] = argumentsOf(policy, attemptOn(keys), detail, START_US, 1);
          const reply = await script.redis.evalsha(sha1, keys.length, ...keys, ...words);
          expect(reply).toHaveLength(keys.length * length);
          const firsts = keys.map((_, i) => reply[i * length]);
          expect(firsts).toEqual([-1, 0, -1, policy.minDifference > 0 ? expect.any(Number) : 0]);
          expect(await script.redis.lrange(KEY, 0, -1)).toEqual(['a']);
          await script.redis.flushall();
        }
      },
    );
  });

  describe.each([true, false])('that is nearly a log, countBlocked: %s', (countBlocked) => {
    test.each([
      [22, 0x44, 2],
      [26, 0x44, 2],
      [26, 0x45, 0],
    ])('%d bytes, %d %d', async (length, form, displaced) => {
      const bytes = Buffer.alloc(length);
      bytes[0] = form;
      bytes[1] = displaced;
      await script.redis.set(KEY, bytes);
      expect(await run(policyOf(LOG, { countBlocked }), 'attempt', 'brief', 5, 1)).toEqual([-1]);
      expect(await script.redis.getBuffer(KEY)).toEqual(bytes);
    });
  });

  describe('that may not be read', () => {
    const some = EACH_FORM.filter(([algorithm]) => algorithm !== LOG);
    test.each(some)('of %s with %s: that is an error', async (_a, _f, policy) => {
      await script.redis.call('ACL', 'SETUSER', 'unread', 'on', 'nopass', '~*', '+@all', '-get');
      const other = script.connect({ username: 'unread', password: 'any' });
      try {
        for (const operation of ['attempt', 'peek']) {
          const words = argumentsOf(policy, operation, 'brief', START_US, 1);
          await expect(other.evalsha(...words)).rejects.toThrow(/permissions|can't run/);
        }
      } finally {
        other.disconnect();
      }
    });
  });
});
