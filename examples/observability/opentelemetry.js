// Reports to OpenTelemetry what limiters do, by their diagnostics channels. Run it:
// node examples/observability/opentelemetry.js
'use strict';

const diagnostics = require('node:diagnostics_channel');
const {
  ConsoleMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} = require('@opentelemetry/sdk-metrics');
const RateLimiter = require('rollgate');

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const WAITS = [0.1, 1, 10, 60, 600, 3600, 86_400];

/**
 * Reports all limiters of this thread to `meter`. Those in `limiters` have their name as the attribute `limiter`,
 * the others, such as those of middlewares, have 'other'. Ids are no attributes: there may be any number of them.
 * Returns a function that ends it.
 */
function observeLimiters(meter, limiters = {}) {
  const nameOf = new Map(Object.entries(limiters).map(([name, limiter]) => [limiter, name]));
  const limiterOf = (message) => nameOf.get(message.limiter) ?? 'other';

  const decisions = meter.createCounter('rollgate.decisions', {
    description: 'Attempts that were decided',
    unit: '{attempt}',
  });
  const waits = meter.createHistogram('rollgate.refusal.time_left', {
    description: 'How long refused attempts have to wait',
    unit: 's',
    advice: { explicitBucketBoundaries: WAITS },
  });
  const shadowDecisions = meter.createCounter('rollgate.shadow.decisions', {
    description: 'What shadow rules said',
    unit: '{request}',
  });
  const evictions = meter.createCounter('rollgate.evictions', {
    description: 'Ids dropped for want of room',
    unit: '{id}',
  });
  const redisCalls = meter.createHistogram('rollgate.redis.call.duration', {
    description: 'How long calls to Redis take',
    unit: 's',
    advice: { explicitBucketBoundaries: SECONDS },
  });
  const evictedBefore = new WeakMap();

  const subscribers = {
    'rollgate:decision': (message) => {
      const limiter = limiterOf(message);
      decisions.add(1, { limiter, outcome: message.allowed ? 'allowed' : 'blocked' });
      if (!message.allowed) waits.record(message.timeLeft / 1000, { limiter });
    },
    'rollgate:shadow': ({ rule, allowed }) => {
      shadowDecisions.add(1, { rule, outcome: allowed ? 'allowed' : 'blocked' });
    },
    'rollgate:evicted': (message) => {
      const { limiter, evicted } = message; // so far
      evictions.add(evicted - (evictedBefore.get(limiter) ?? 0), { limiter: limiterOf(message) });
      evictedBefore.set(limiter, evicted);
    },
    'rollgate:redis': (message) => {
      if (message.type !== 'call') return;
      const { command, durationMs, error } = message;
      const outcome = error === null ? 'ok' : 'error';
      redisCalls.record(durationMs / 1000, { limiter: limiterOf(message), command, outcome });
    },
  };

  const keys = meter.createObservableGauge('rollgate.keys', {
    description: 'Ids held',
    unit: '{id}',
  });
  function readKeys(result) {
    for (const [limiter, name] of nameOf) {
      const held = limiter.stats().keys;
      if (held !== null) result.observe(held, { limiter: name }); // Redis does not say
    }
  }

  for (const [channel, subscriber] of Object.entries(subscribers)) {
    diagnostics.subscribe(channel, subscriber);
  }
  keys.addCallback(readKeys);
  return () => {
    for (const [channel, subscriber] of Object.entries(subscribers)) {
      diagnostics.unsubscribe(channel, subscriber);
    }
    keys.removeCallback(readKeys);
  };
}

async function main() {
  // An application has its own provider: metrics.getMeter('rollgate') of @opentelemetry/api gives its meter.
  const reader = new PeriodicExportingMetricReader({ exporter: new ConsoleMetricExporter() });
  const provider = new MeterProvider({ readers: [reader] });
  const api = RateLimiter({ interval: 60_000, maxInInterval: 3 });
  const stop = observeLimiters(provider.getMeter('rollgate'), { api });
  for (const id of ['ada', 'ada', 'bob', 'ada', 'ada']) api(id);
  await provider.shutdown(); // exports what was not exported yet
  stop();
}

if (require.main === module) main();

module.exports = { observeLimiters };
