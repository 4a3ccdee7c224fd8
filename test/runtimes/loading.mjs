// import and require of every entry point give the same things.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import RateLimiter, * as everything from 'rollgate';
import rollgate from 'rollgate/fastify';
import { registerMetrics, topBlocked } from 'rollgate/metrics';
import RollgateStore, { RollgateStore as named } from 'rollgate/store';

const require = createRequire(import.meta.url);

assert.equal(require('rollgate'), RateLimiter);
assert.equal(everything.RateLimiter, RateLimiter);
for (const [name, value] of Object.entries(everything)) {
  if (name !== 'default') assert.equal(RateLimiter[name], value, name);
}
assert.deepEqual(
  Object.keys(RateLimiter).filter((name) => !(name in everything)),
  [],
);
assert.equal(require('rollgate/fastify'), rollgate);
assert.equal(require('rollgate/store'), RollgateStore);
assert.equal(named, RollgateStore);
assert.equal(require('rollgate/metrics').registerMetrics, registerMetrics);
assert.equal(require('rollgate/metrics').topBlocked, topBlocked);
assert.equal(require('rollgate/package.json').name, 'rollgate');
assert.throws(() => require('rollgate/lib/native.js'), {
  code: /^(ERR_PACKAGE_PATH_NOT_EXPORTED|MODULE_NOT_FOUND)$/, // the second is Bun's
});

assert.equal(RateLimiter({ interval: 1000, maxInInterval: 1 })('ada'), 0);
assert.equal(new RateLimiter({ interval: 1000, maxInInterval: 1 })('ada'), 0);
console.log('result: works');
