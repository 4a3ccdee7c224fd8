// What a process that was busy itself makes of answers that came in time.
'use strict';

const RateLimiter = require('../..');
const { EACH_CLIENT, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { waitUntil } = require('../support/wait-until');

const COMMAND_TIMEOUT = 300;
const { using, closeAll } = openings();
let server;

beforeAll(async () => {
  server = await startRedis();
});

describe.each(EACH_CLIENT)('through %s', (name, open) => {
  afterAll(closeAll);

  test('calls answered while the loop was busy are not late', async () => {
    const limiter = RateLimiter({
      redis: { ...using(open(server.url)), commandTimeout: COMMAND_TIMEOUT },
      namespace: name,
      interval: 60_000,
      maxInInterval: 1000,
    });
    await waitUntil('it is connected', () =>
      limiter('a').then(
        () => true,
        () => false,
      ),
    );
    const calls = Array.from({ length: 10 }, () => limiter('a'));
    await new Promise(setImmediate); // they are on their way
    const until = performance.now() + 2 * COMMAND_TIMEOUT;
    while (performance.now() < until);
    expect(await Promise.all(calls)).toEqual(calls.map(() => 0));
    await limiter.close();
  });
});
