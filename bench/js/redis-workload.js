// What a measuring process does with a limiter on Redis: random ids, many checks in flight, both processes' CPU time.

const { ORDER_LENGTH, randomOrder } = require('./workload');

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const ID_LENGTH = 16;

/** Always the same for one count; each a flat string of 16 characters. */
function randomIds(count) {
  const bytes = Buffer.alloc(count * ID_LENGTH);
  let state = 2463534242;
  for (let i = 0; i < bytes.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = ALPHABET.charCodeAt(state >>> 26);
  }
  return Array.from({ length: count }, (_, i) =>
    bytes.latin1Slice(i * ID_LENGTH, (i + 1) * ID_LENGTH),
  );
}

/** Random draws from these ids, always the same. */
function drawsFrom(ids) {
  const order = randomOrder(ids.length);
  return (k) => ids[order[k & (ORDER_LENGTH - 1)]];
}

// One loop per calling convention, as in workload.js. The clock is read once per check, where one ends
// and the next begins, so a latency has in it what the loop itself does. `run` is common to all loops
// in flight.

async function loopAwait({ check, isRefused }, run) {
  let start = performance.now();
  while (run.begun < run.most) {
    const answer = await check(run.idAt(run.begun++));
    if (isRefused(answer)) run.refused++;
    start = note(run, start);
  }
}

async function loopRejecting({ check }, run) {
  let start = performance.now();
  while (run.begun < run.most) {
    try {
      await check(run.idAt(run.begun++));
    } catch (reason) {
      if (reason instanceof Error) throw reason; // that is no refusal
      run.refused++;
    }
    start = note(run, start);
  }
}

function note(run, start) {
  const end = performance.now();
  run.latencies[run.done++] = end - start;
  if (end > run.deadline) run.most = run.begun;
  return end;
}

const LOOPS = { await: loopAwait, rejects: loopRejecting };

/**
 * Runs `count` checks with `inFlight` of them at any time, fewer when `limitMs` is over sooner. Gives
 * how many there were and were refused; per second; the latencies and what a check cost this process
 * and the server in us. `expectRefused(checks)` is how many ought to be refused.
 */
async function runInFlight(subject, server, { idAt, inFlight, count, limitMs, expectRefused }) {
  const latencies = new Float64Array(count);
  const run = { idAt, latencies, begun: 0, done: 0, refused: 0, most: count, deadline: 0 };
  const serverStart = await serverCpu(server);
  const cpuStart = process.cpuUsage();
  const start = performance.now();
  run.deadline = start + limitMs;
  await Promise.all(Array.from({ length: inFlight }, () => LOOPS[subject.calling](subject, run)));
  const elapsed = performance.now() - start;
  const cpu = process.cpuUsage(cpuStart);
  const serverEnd = await serverCpu(server);
  const { done, refused } = run;
  const expected = expectRefused?.(done) ?? refused;
  if (refused !== expected) {
    throw new Error(`refused ${refused} of ${done} checks instead of ${expected}`);
  }
  const sorted = latencies.subarray(0, done).sort();
  return {
    checks: done,
    refused,
    perSecond: (done * 1e3) / elapsed,
    p50: sorted[Math.floor(done * 0.5)] * 1e3,
    p99: sorted[Math.floor(done * 0.99)] * 1e3,
    nodeCpu: (cpu.user + cpu.system) / done,
    serverCpu: (serverEnd - serverStart) / done,
  };
}

/** How many of the first checks are above `max` of their id: what a limiter refuses in one window. */
function refusedAbove(max, idAt) {
  return (checks) => {
    const made = new Map();
    let refused = 0;
    for (let k = 0; k < checks; k++) {
      const before = made.get(idAt(k)) ?? 0;
      if (before >= max) refused++;
      made.set(idAt(k), before + 1);
    }
    return refused;
  };
}

/** All CPU time of the server until now, in us. */
async function serverCpu(server) {
  const info = await server.command('INFO', 'cpu');
  const seconds = (name) => Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(info)[1]);
  return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6;
}

/** Throws unless the first `max` checks of an id pass and the next one does not. */
async function assertLimits(subject, server, max) {
  const of = (name) => () => name;
  const refusedOf = async (idAt, count) => {
    const limits = { inFlight: 1, count, limitMs: Infinity };
    return (await runInFlight(subject, server, { idAt, ...limits })).refused;
  };
  const refused = [
    await refusedOf(of('first-id-of-all.'), max),
    await refusedOf(of('first-id-of-all.'), 1),
    await refusedOf(of('some-other-id...'), 1),
  ];
  if (refused.join() !== '0,1,0') {
    throw new Error(`does not limit: refused ${refused} of ${max}, then 1, and 1 of another id`);
  }
}

module.exports = { assertLimits, drawsFrom, randomIds, refusedAbove, runInFlight, serverCpu };
