// The behaviours of limiters on Redis through the native client, without Jest. Beside this file, the folder clone has
// the folder test of a clone, and lib of the package. The environment has REDIS_URL.
import { createRequire } from 'node:module';
import { createClient } from 'redis';

const require = createRequire(import.meta.url);
globalThis.expect = require('expect').expect;
const RateLimiter = require('./clone/lib');
const { ALGORITHM_NAMES } = require('./clone/test/conformance/oracle');
const { TOPICS, behavioursOf, runBehaviour } = require('./clone/test/conformance/suite');

const url = process.env.REDIS_URL;
const client = await createClient({ url }).connect();
const SHA1_OF = "return redis.sha1hex(redis.call('GET', KEYS[1]))";
const STORE = { isSync: false, expires: true, mostBytes: 200, largestLimit: () => Infinity };

const place = {
  open: (options) => RateLimiter({ redis: { url, commandTimeout: 15_000 }, ...options }),
  together: (namespace) => ({ namespace }),
  async stateOf(namespace, id) {
    const key = `${namespace}{${id}}`;
    const bytes = await client.strLen(key);
    if (bytes === 0) return undefined;
    const sha1 = await client.eval(SHA1_OF, { keys: [key] });
    return { bytes, sha1, expires: await client.pExpireTime(key) };
  },
};

// A behaviour may leave callers waiting, whose limiter is then closed.
process.on('unhandledRejection', (error) => {
  if (error.code !== 'ERR_ROLLGATE_CLOSED') throw error;
});

const failed = [];
let count = 0;
for (const algorithm of ALGORITHM_NAMES) {
  for (const [, topic] of TOPICS) {
    for (const [sentence, behaviour] of behavioursOf(topic, algorithm)) {
      count += 1;
      try {
        await runBehaviour(behaviour, STORE, place, algorithm);
      } catch (error) {
        failed.push(`${algorithm}: ${sentence}: ${error.stack}`);
      }
    }
  }
}
await client.close();
console.log(failed.join('\n'));
console.log(`${count} behaviours, ${failed.length} failed`);
if (failed.length > 0 || count < 100) process.exit(1);
console.log('result: works');
