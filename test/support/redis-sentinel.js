// A master, two replicas and three Sentinels on loopback, which fail over within a second or two.
// They are servers of redis-server.js; what is said there of their end is true here too.
'use strict';

const { startRedis, stopRedis } = require('./redis-server');
const { waitUntil } = require('./outcome');

const HOST = '127.0.0.1';
const NAME = 'mymaster';
const QUORUM = 2;
const SETTINGS = { 'down-after-milliseconds': 500, 'failover-timeout': 3000, 'parallel-syncs': 2 };
/** In ms; the usual ones are up to 10 s. */
const PERIODS = {
  'info-period': 500,
  'publish-period': 500,
  'ask-period': 300,
  'ping-period': 200,
};
const REPLICA = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];

/** Whether a Sentinel finds nothing wrong with a replica. */
function isInStep(replica) {
  const field = (name) => replica[replica.indexOf(name) + 1];
  const state = ['flags', 'role-reported', 'master-link-status'].map(field);
  return state.join() === 'slave,slave,ok';
}

const words = (settings) => Object.entries(settings).flat();

class SentinelGroup {
  name = NAME;

  constructor(servers, sentinels) {
    this.servers = servers;
    this.sentinels = sentinels;
  }

  /** For the option `sentinels`. */
  get addresses() {
    return this.sentinels.map(({ port }) => ({ host: HOST, port }));
  }

  /** The server that a Sentinel takes for the master. */
  async masterBy(sentinel) {
    const [, port] = await sentinel.command('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
    return this.servers.find((server) => server.port === Number(port));
  }

  /** The master, as all running Sentinels and itself agree. */
  master() {
    return waitUntil('the Sentinels agree', async () => {
      const running = this.sentinels.filter(({ pid }) => pid !== undefined);
      const named = new Set(await Promise.all(running.map((sentinel) => this.masterBy(sentinel))));
      const [server] = named;
      return named.size === 1 && (await server.command('ROLE'))[0] === 'master' && server;
    });
  }

  /** Resolves to the new master. The old one becomes its replica. */
  async failOver() {
    await this.settled();
    const before = await this.master();
    await this.sentinels[0].command('SENTINEL', 'FAILOVER', NAME);
    return this.#successorOf(before);
  }

  /** Resolves to the new master. */
  async killMaster() {
    const before = await this.master();
    await before.stop();
    return this.#successorOf(before);
  }

  /** Resolves once each Sentinel knows all others and all replicas, and these are in step with the master. */
  settled() {
    return waitUntil('the Sentinels know everybody', async () => {
      const master = await this.master();
      const ready = this.sentinels.map(async (sentinel) => {
        const others = await sentinel.command('SENTINEL', 'SENTINELS', NAME);
        const replicas = await sentinel.command('SENTINEL', 'REPLICAS', NAME);
        return others.length === 2 && replicas.length === 2 && replicas.every(isInStep);
      });
      const [, , replicas] = await master.command('ROLE');
      return replicas.length === 2 && (await Promise.all(ready)).every(Boolean);
    });
  }

  /** Resolves once the replicas have all that was written at the master until now. */
  async replicated() {
    const master = await this.master();
    const [, written] = await master.command('ROLE');
    await waitUntil('the replicas have it all', async () => {
      const [, , replicas] = await master.command('ROLE');
      return replicas.length === 2 && replicas.every(([, , read]) => Number(read) >= written);
    });
  }

  stop() {
    return stopRedis([...this.servers, ...this.sentinels]);
  }

  #successorOf(before) {
    return waitUntil('another server is the master', async () => {
      const master = await this.master();
      return master !== before && master;
    });
  }
}

async function startSentinel(masterPort) {
  const sentinel = await startRedis({ args: ['--sentinel'], keepsConfig: true });
  await sentinel.command('SENTINEL', 'DEBUG', ...words(PERIODS));
  await sentinel.command('SENTINEL', 'MONITOR', NAME, HOST, masterPort, QUORUM);
  await sentinel.command('SENTINEL', 'SET', NAME, ...words(SETTINGS));
  return sentinel;
}

/** Takes two to four seconds. */
async function startSentinels() {
  const master = await startRedis({ args: REPLICA });
  const following = [...REPLICA, '--replicaof', HOST, String(master.port)];
  const replicas = await Promise.all([1, 2].map(() => startRedis({ args: following })));
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(master.port)));
  const group = new SentinelGroup([master, ...replicas], sentinels);
  await group.settled();
  return group;
}

module.exports = { startSentinels };
