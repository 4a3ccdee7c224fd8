// What a measuring process does: builds ids, draws orders, and runs checks against the clocks.

const LITERAL = 'user-00000000042'; // 16 characters, like the built ones

/**
 * Gives a function from 0 <= i < count to the i-th 16-character id, joined anew on every call
 * from two halves, so that neither a hash nor a flat copy of it can be left over from before.
 */
function freshIds(count) {
  const tails = Array.from({ length: 1024 }, (_, i) => `:${String(i).padStart(7, '0')}`);
  const heads = Array.from(
    { length: Math.ceil(count / 1024) },
    (_, i) => `id${String(i).padStart(6, '0')}`,
  );
  return (i) => heads[i >>> 10] + tails[i & 1023];
}

/** The same ids, each copied out of a buffer on every call: one flat piece of memory, never seen before. */
function flatIds(count) {
  const joined = freshIds(count);
  const bytes = Buffer.from(Array.from({ length: count }, (_, i) => joined(i)).join(''), 'latin1');
  return (i) => bytes.latin1Slice(i * 16, i * 16 + 16);
}

/** The same ids, made before the clock starts and each in one flat piece: what a session or a token holds. */
function heldIds(count) {
  const ids = Array.from({ length: count }, (_, i) => i).map(flatIds(count));
  return (i) => ids[i];
}

/** The same string constant every time: its hash is known, and engine and caches are at their best. */
function literalId() {
  return () => LITERAL;
}

const ORDER_LENGTH = 1 << 20;

/** A million draws from 0..below-1, made before the clock starts and read round and round. */
function randomOrder(below, seed = 2463534242) {
  const order = new Uint32Array(ORDER_LENGTH);
  let state = seed;
  for (let i = 0; i < ORDER_LENGTH; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    order[i] = (state >>> 0) % below;
  }
  return order;
}

// One loop per calling convention. A process measures one subject, so each loop sees one `check`
// and the engine may inline it, as it would in an application with one limiter.

function loopSync({ check }, idAt, indexAt, from, to) {
  let refused = 0;
  for (let k = from; k < to; k++) if (check(idAt(indexAt(k))) > 0) refused++;
  return refused;
}

async function loopAwait({ check, isRefused }, idAt, indexAt, from, to) {
  let refused = 0;
  for (let k = from; k < to; k++) if (isRefused(await check(idAt(indexAt(k))))) refused++;
  return refused;
}

async function loopRejecting({ check }, idAt, indexAt, from, to) {
  let refused = 0;
  for (let k = from; k < to; k++) {
    try {
      await check(idAt(indexAt(k)));
    } catch {
      refused++;
    }
  }
  return refused;
}

const LOOPS = { sync: loopSync, await: loopAwait, rejects: loopRejecting };

/**
 * Runs `count` checks, fewer when `limitMs` is over sooner, and says how many there were, how many
 * were refused, and what one cost: `wall` and `cpu` in ns; cpu is that of all threads of the process.
 */
async function runChecks(
  subject,
  idAt,
  indexAt,
  count,
  { limitMs = Infinity, step = 10_000 } = {},
) {
  const loop = LOOPS[subject.calling];
  let done = 0;
  let refused = 0;
  const cpuStart = process.cpuUsage();
  const start = performance.now();
  let elapsed = 0;
  while (done < count && elapsed < limitMs) {
    const next = Math.min(done + step, count);
    refused += await loop(subject, idAt, indexAt, done, next);
    done = next;
    elapsed = performance.now() - start;
  }
  const cpu = process.cpuUsage(cpuStart);
  return {
    checks: done,
    refused,
    wall: (elapsed * 1e6) / done,
    cpu: ((cpu.user + cpu.system) * 1e3) / done,
  };
}

const sequential = (below) => (k) => k % below;
const shuffled = (order) => (k) => order[k & (ORDER_LENGTH - 1)];

/** RSS in bytes after full collections, once the allocator has had a moment to give pages back. */
async function settledRss() {
  for (let i = 0; i < 4; i++) {
    global.gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return process.memoryUsage.rss();
}

module.exports = {
  flatIds,
  freshIds,
  heldIds,
  literalId,
  randomOrder,
  runChecks,
  sequential,
  settledRss,
  shuffled,
  ORDER_LENGTH,
};
