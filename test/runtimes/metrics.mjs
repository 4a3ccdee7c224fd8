// Metrics for prom-client, the ids that are refused most, and the diagnostics channel below them.
import assert from 'node:assert/strict';
import { subscribe } from 'node:diagnostics_channel';
import { Registry } from 'prom-client';
import RateLimiter from 'rollgate';
import { registerMetrics, topBlocked } from 'rollgate/metrics';

const limiter = RateLimiter({ interval: 60_000, maxInInterval: 2 });
const register = new Registry();
registerMetrics({ limiters: { api: limiter }, register });
const blocked = topBlocked({ limiters: { api: limiter } });
const decisions = [];
subscribe('rollgate:decision', ({ id }) => decisions.push(id));

for (const id of ['ada', 'ada', 'bob', 'ada', 'ada']) limiter(id);

assert.deepEqual(decisions, ['ada', 'ada', 'bob', 'ada', 'ada']);
assert.deepEqual(blocked.top(1), [{ limiter: 'api', id: 'ada', blocked: 2, overcount: 0 }]);
const text = await register.metrics();
assert.match(text, /^rollgate_decisions_total\{.*outcome="allowed".*\} 3$/m);
assert.match(text, /^rollgate_decisions_total\{.*outcome="blocked".*\} 2$/m);
assert.match(text, /^rollgate_keys\{limiter="api"\} 2$/m);
console.log('result: works');
