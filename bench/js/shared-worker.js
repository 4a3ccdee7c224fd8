// One of the processes that check at the same time: warms up, says so, and measures when it is told to.

const { freshIds, heldIds, literalId, randomOrder, runChecks, shuffled } = require('./workload');

const SUBJECTS = {
  shared({ name, maxKeys, ...limits }) {
    const { RateLimiter } = require('../../lib');
    return { calling: 'sync', check: RateLimiter({ ...limits, shared: { name, maxKeys } }) };
  },

  async clusterStore({ interval, maxInInterval }) {
    const { ClusterMemoryStoreWorker } = require('@express-rate-limit/cluster-memory-store');
    const store = new ClusterMemoryStoreWorker({ prefix: 'bench' });
    await store.init({ windowMs: interval });
    return {
      calling: 'await',
      check: (id) => store.increment(id),
      isRefused: (client) => client.totalHits > maxInInterval,
    };
  },
};

/** Several loops of `await` at once, for a subject that waits for another process. */
async function runInFlight(subject, idAt, indexAt, { inFlight, limitMs }) {
  let checks = 0;
  let refused = 0;
  const start = performance.now();
  const loop = async (first) => {
    for (let k = first; performance.now() - start < limitMs; k += inFlight) {
      if (subject.isRefused(await subject.check(idAt(indexAt(k))))) refused++;
      checks++;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, (_, i) => loop(i)));
  return { checks, refused, wall: ((performance.now() - start) * 1e6) / checks };
}

let measureFor;

async function prepare({ subject: name, ids, areHeld, inFlight, limits }) {
  const subject = await SUBJECTS[name](limits);
  const make = areHeld ? heldIds : freshIds;
  const idAt = ids === 1 ? literalId() : make(ids);
  const indexAt = shuffled(randomOrder(ids, 2463534242 + process.pid));
  measureFor = (limitMs) =>
    subject.calling === 'await'
      ? runInFlight(subject, idAt, indexAt, { inFlight, limitMs })
      : runChecks(subject, idAt, indexAt, Number.MAX_SAFE_INTEGER, { limitMs, step: 1000 });
}

process.on('message', async ({ bench }) => {
  if (bench === undefined) return;
  if (bench.prepare !== undefined) {
    await prepare(bench.prepare);
    await measureFor(bench.prepare.warmUpMs);
    process.send({ bench: 'ready' });
  } else {
    process.send({ bench: await measureFor(bench.go) });
  }
});
