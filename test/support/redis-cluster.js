// Real Redis Clusters for tests: three primaries on loopback, slots that move, failovers; load on them.
// Its nodes are servers of redis-server.js; what is said there of their end is true here too.
'use strict';

const { setTimeout: pause } = require('node:timers/promises');
const { startRedis, stopRedis } = require('./redis-server');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { waitUntil } = require('./outcome');
const { patient } = require('./tiers');

const PRIMARIES = 3;
const SLOTS = 16_384;
const SETTINGS = {
  'cluster-enabled': 'yes',
  'cluster-node-timeout': '1000',
  'cluster-replica-validity-factor': '0', // a replica takes over, however long it heard nothing
  'cluster-migration-barrier': '100', // replicas stay with their primary
  'repl-diskless-sync-delay': '0',
};

/** The lines of CLUSTER NODES: what one node thinks of all. */
async function viewOf(node) {
  const text = await node.command('CLUSTER', 'NODES');
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [id, , flags, primaryId, , , , link, ...ranges] = line.split(' ');
      const slots = ranges.filter((range) => !range.startsWith('[')); // those are on their way
      return { id, flags: flags.split(','), primaryId, connected: link === 'connected', slots };
    });
}

/** Of a started node: whether it finds the cluster complete and its replication up. */
async function isContent(node) {
  const info = await node.command('CLUSTER', 'INFO');
  const replication = await node.command('INFO', 'replication');
  return (
    info.includes('cluster_state:ok') &&
    info.includes(`cluster_slots_ok:${SLOTS}`) &&
    !replication.includes('master_link_status:down')
  );
}

/** A node's view in one text that is the same on all nodes which agree. */
function summary(view) {
  return view
    .filter(({ flags }) => !flags.some((flag) => flag.startsWith('fail')))
    .map(({ id, primaryId, slots }) => [id, primaryId, ...slots].join(' '))
    .sort()
    .join('\n');
}

class RedisCluster {
  #ids = new Map(); // from node to its id in the cluster

  #network;

  /**
   * @param {import('./redis-server').RedisServer[]} nodes primaries first, then their replicas
   * @param {import('./cluster-network').ClusterNetwork} [network] what is between the nodes
   */
  constructor(nodes, network) {
    this.nodes = nodes;
    this.#network = network;
    network?.connect(nodes);
  }

  get urls() {
    return this.nodes.map((node) => this.#network?.urlOf(node) ?? node.url);
  }

  idOf(node) {
    return this.#ids.get(node);
  }

  /** The node that serves a slot now, as its running nodes agree. */
  async ownerOf(slot) {
    await this.settled();
    const view = await viewOf(this.#running()[0]);
    const owner = view.find(({ slots }) =>
      slots.some((range) => {
        const [first, last = first] = range.split('-').map(Number);
        return first <= slot && slot <= last;
      }),
    );
    return this.#nodeWithId(owner.id);
  }

  /** Resolves once all running nodes (frozen ones do not count) say that all is well, and the same of each other. */
  async settled() {
    await waitUntil(
      'the cluster has settled',
      async () => {
        const running = this.#running();
        const ids = new Set(running.map((node) => this.idOf(node)));
        const views = await Promise.all(running.map(viewOf));
        const alive = views.every((view) =>
          view
            .filter(({ id }) => ids.has(id))
            .every(({ flags, connected }) => connected && !flags.some((f) => f.startsWith('fail'))),
        );
        const agreed = new Set(views.map(summary)).size === 1;
        return alive && agreed && (await Promise.all(running.map(isContent))).every(Boolean);
      },
      { withinMs: patient(25_000), everyMs: 50 },
    );
  }

  /** From now on `from` answers ASK for keys of the slot that it does not have. */
  async beginMove(slot, from, to) {
    await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', this.idOf(from));
    await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', this.idOf(to));
  }

  /** Moves the keys that are there. */
  async moveKeys(slot, from, to) {
    for (;;) {
      const keys = await from.command('CLUSTER', 'GETKEYSINSLOT', slot, 100);
      if (keys.length === 0) return;
      await from.command('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys);
    }
  }

  /** From now on `from` answers MOVED; resolves once every node knows. */
  async endMove(slot, from, to) {
    for (const node of [to, from]) {
      await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', this.idOf(to));
    }
    await waitUntil(
      'every node knows the new owner',
      async () => (await this.ownerOf(slot)) === to,
    );
  }

  /**
   * Has the replica of `primary` take over, and resolves to it once all running nodes agree. The
   * primary becomes its replica; with `kill` it is stopped first, and becomes one after restart().
   */
  async failOver(primary, { kill = false } = {}) {
    const view = await viewOf(primary);
    const heir = view.find(({ primaryId }) => primaryId === this.idOf(primary));
    if (heir === undefined) throw new Error('this node has no replica that could take over');
    const replica = this.#nodeWithId(heir.id);
    if (kill) await primary.stop();
    else await replica.command('CLUSTER', 'FAILOVER');
    await waitUntil(
      'the replica has taken over',
      async () => (await replica.command('ROLE'))[0] === 'master',
    );
    await this.settled();
    return replica;
  }

  /** Resolves once a replica of the primary has all that was written there until now. */
  async replicated(primary) {
    const [, written] = await primary.command('ROLE');
    await waitUntil('the replica has it all', async () => {
      const [, , replicas] = await primary.command('ROLE');
      return replicas.some(([, , read]) => Number(read) >= written);
    });
  }

  async stop() {
    await stopRedis(this.nodes);
  }

  /** Joins freshly started nodes. For startCluster alone. */
  async form() {
    for (const [index, node] of this.nodes.entries()) {
      this.#ids.set(node, await node.command('CLUSTER', 'MYID'));
      await node.command('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    }
    for (const [index, node] of this.nodes.slice(0, PRIMARIES).entries()) {
      const first = Math.ceil((index * SLOTS) / PRIMARIES);
      const end = Math.ceil(((index + 1) * SLOTS) / PRIMARIES);
      const slots = Array.from({ length: end - first }, (_, offset) => first + offset);
      await node.command('CLUSTER', 'ADDSLOTS', ...slots);
    }
    for (const node of this.nodes) {
      for (const other of this.nodes) {
        const ports = this.#network?.portsOf(other) ?? [other.port];
        if (other !== node) await node.command('CLUSTER', 'MEET', '127.0.0.1', ...ports);
      }
    }
    await waitUntil('all nodes have met', async () => {
      const views = await Promise.all(this.nodes.map(viewOf));
      return views.every(
        (view) =>
          view.length === this.nodes.length &&
          view.every(({ flags, connected }) => connected && !flags.includes('handshake')),
      );
    });
    for (const [index, node] of this.nodes.slice(PRIMARIES).entries()) {
      const primary = this.nodes[index % PRIMARIES];
      await node.command('CLUSTER', 'REPLICATE', this.idOf(primary));
    }
    await this.settled();
  }

  #running() {
    return this.nodes.filter((node) => node.pid !== undefined && !node.frozen);
  }

  #nodeWithId(wanted) {
    return this.nodes.find((node) => this.idOf(node) === wanted);
  }
}

/**
 * Starts three primaries that share the slots evenly, each with `replicas` replicas; `args` are
 * further arguments for all of them. With a `network`, nodes and clients reach a node only through it. Takes
 * two to four seconds.
 *
 * @param {{ replicas?: 0 | 1, args?: string[], network?: import('./cluster-network').ClusterNetwork }} [options]
 * @returns {Promise<RedisCluster>}
 */
async function startCluster({ replicas = 0, args = [], network } = {}) {
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => [`--${name}`, value]);
  await network?.open(PRIMARIES * (1 + replicas));
  const starts = await Promise.allSettled(
    Array.from({ length: PRIMARIES * (1 + replicas) }, (_, i) =>
      startRedis({ args: [...settings, ...args, ...(network?.argsOf(i) ?? [])] }),
    ),
  );
  const nodes = starts.flatMap(({ value }) => (value ? [value] : []));
  const cluster = new RedisCluster(nodes, network);
  try {
    for (const { reason } of starts) if (reason) throw reason;
    await cluster.form();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

/** The first `count` ids whose keys are in the slot of the id `like`, that one among them. */
function idsInSlotOf(like, count) {
  const slot = keySlot(`{${like}}`);
  const ids = [like];
  for (let i = 0; ids.length < count; i++) {
    if (keySlot(`{same ${i}}`) === slot) ids.push(`same ${i}`);
  }
  return ids;
}

const loads = new Set();
globalThis.afterEach?.(() => loads.clear());

/**
 * Begins to make calls, `atOnce` at a time: `call(i)` promises the ids that were allowed. `stop()`
 * resolves to how often each id was, how many calls were made, and how they failed. In Jest calls end with the
 * test, also if it fails.
 */
function startLoad(call, { atOnce = 4 } = {}) {
  const load = { allowed: new Map(), failures: [], made: 0 };
  loads.add(load);
  const keepCalling = async () => {
    while (loads.has(load)) {
      try {
        for (const id of await call(load.made++)) {
          load.allowed.set(id, (load.allowed.get(id) ?? 0) + 1);
        }
      } catch (error) {
        load.failures.push(error);
        await pause(5); // without it, failures at once would fill the memory
      }
    }
  };
  const callers = Array.from({ length: atOnce }, keepCalling);
  load.stop = async () => {
    loads.delete(load);
    await Promise.all(callers);
    return load;
  };
  return load;
}

/** A call for startLoad: one id after the other. */
const callingEach = (limiter, ids) => async (i) => {
  const id = ids[i % ids.length];
  return (await limiter(id)) === 0 ? [id] : [];
};

/** A call for startLoad: all ids at once. */
const callingAll = (limiter, ids) => async () => {
  const decisions = await limiter.attemptMany(ids);
  return ids.filter((_, i) => decisions[i].allowed);
};

module.exports = { callingAll, callingEach, idsInSlotOf, startCluster, startLoad };
