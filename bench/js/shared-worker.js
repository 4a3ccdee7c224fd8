// One of the processes that check at the same time: warms up, says so, and measures when it is told to.

const { freshIds, literalId, randomOrder, runChecks, shuffled } = require('./workload');

const SUBJECTS = {
  shared({ name, maxKeys, ...limits }) {
    const { RateLimiter } = require('../../lib');
    return { calling: 'sync', check: RateLimiter({ ...limits, shared: { name, maxKeys } }) };
  },

  clusterStore({ interval, maxInInterval }) {
    const { ClusterMemoryStore } = require('@express-rate-limit/cluster-memory-store');
    const store = new ClusterMemoryStore({ prefix: 'bench' });
    store.init({ windowMs: interval });
    return {
      calling: 'await',
      check: (id) => store.increment(id),
      isRefused: (client) => client.totalHits > maxInInterval,
    };
  },
};

/** Several loops of `await` at once, for subjects that wait for another process. */
async function runInFlight(subject, idAt, indexAt, { inFlight, limitMs }) {
  let checks = 0;
  const start = performance.now();
  const loop = async (first) => {
    for (let k = first; performance.now() - start < limitMs; k += inFlight) {
      subject.isRefused(await subject.check(idAt(indexAt(k))));
      checks++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, i) => loop(i)));
  return { checks, wall: ((performance.now() - start) * 1e6) / checks };
}

function measureFor(subject, idAt, indexAt, options) {
  if (subject.calling === 'await') return runInFlight(subject, idAt, indexAt, options);
  return runChecks(subject, idAt, indexAt, Infinity, { limitMs: options.limitMs, step: 1000 });
}

process.on('message', async ({ job, limits }) => {
  if (job !== undefined) {
    const subject = SUBJECTS[job.subject](limits);
    const idAt = job.ids === 1 ? literalId() : freshIds(job.ids);
    const indexAt = shuffled(randomOrder(job.ids, 2463534242 + process.pid));
    const { inFlight } = job;
    process.go = (limitMs) => measureFor(subject, idAt, indexAt, { inFlight, limitMs });
    await process.go(job.warmUpMs);
    process.send('ready');
    return;
  }
  process.send(await process.go(limits.limitMs), () => process.disconnect());
});
