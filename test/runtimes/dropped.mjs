// A limiter that is dropped is freed, though nobody closes it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';
import { setImmediate } from 'node:timers/promises';
import RateLimiter from 'rollgate';

const LIMITERS = 20_000;

const require = createRequire(import.meta.url);
const installed = path.dirname(require.resolve('rollgate/package.json'));
const { liveLimiters } = require(path.join(installed, 'lib/native.js')).loadAddon();

let most = 0;
for (let made = 0; made < LIMITERS; made += 1) {
  const limiter = RateLimiter({ interval: 60_000, maxInInterval: 5 });
  for (let id = 0; id < 20; id += 1) limiter(id);
  if (made % 50 > 0) continue;
  await setImmediate(); // finalizers run between two turns of the event loop
  most = Math.max(most, liveLimiters());
}
assert.ok(most >= 1 && most < 0.75 * LIMITERS, `${most} of ${LIMITERS} limiters lived at once`);
console.log('result: works');
