// Key-value stores: "plain" is an object as users write one, "deno" is Deno KV.
import assert from 'node:assert/strict';
import v8 from 'node:v8';
import RateLimiter from 'rollgate';

function plainKv() {
  const entries = new Map();
  let versions = 0;
  return {
    get: async (key) => entries.get(key) ?? null,
    async set(key, value, version) {
      if ((entries.get(key)?.version ?? null) !== version) return false;
      versions += 1;
      entries.set(key, { value, version: versions });
      return true;
    },
    delete: async (key) => entries.delete(key),
    list: (prefix) => [...entries.keys()].filter((key) => key.startsWith(prefix)),
    close() {},
  };
}

async function denoKv() {
  if (globalThis.Deno) return globalThis.Deno.openKv(':memory:');
  const { openKv } = await import('@deno/kv');
  const coding = process.versions.bun && { encodeV8: v8.serialize, decodeV8: v8.deserialize };
  return openKv(':memory:', coding); // Bun asks for it; bytes need none
}

const kv = await (process.argv[2] === 'plain' ? plainKv() : denoKv());
const options = {
  kv,
  namespace: 'api',
  interval: 3_600_000,
  maxInInterval: 5,
  commandTimeout: 5000,
};

for (const algorithm of ['sliding-window-log', 'sliding-window-counter', 'fixed-window', 'gcra']) {
  // Two limiters are two processes to a store: they race for each write.
  const limiters = [1, 2].map(() => {
    return RateLimiter({ ...options, namespace: algorithm, algorithm, countBlocked: false });
  });
  const calls = Array.from({ length: 10 }, (_, call) => limiters[call % 2]('ada'));
  const timesLeft = await Promise.all(calls);
  assert.equal(timesLeft.filter((timeLeft) => timeLeft === 0).length, 5, algorithm);
  assert.equal((await limiters[0].peek('ada')).allowed, false, algorithm);
  await limiters[0].clear('ada');
  assert.equal(await limiters[1]('ada'), 0, algorithm);
}

const limiter = RateLimiter({ ...options, countBlocked: false });
const decision = await limiter.attempt('ada', { cost: 5 });
assert.equal((await limiter('ada')) > 0, true);
assert.equal(await limiter.refund(decision), true);
assert.equal(await limiter('ada'), 0);
await limiter.clearAll();
assert.equal((await limiter.peek('ada')).actionsLeft, 4);
kv.close();
console.log('result: works');
