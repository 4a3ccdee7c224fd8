// What is between the nodes of a cluster and its clients: proxies of their ports, which a partition divides.
'use strict';

const { startProxy } = require('./tcp-proxy');

const BUS = 10_000; // the cluster bus is so far above the port for clients
/** Each node connects from an address of its own, so that a proxy knows who comes. */
const addressOf = (index) => `127.0.0.${10 + index}`;
const CLIENT = '127.0.0.1';

class ClusterNetwork {
  #proxies = []; // of each node: for clients and replicas, and for the bus
  #nodes;

  /** For startCluster alone, as are argsOf() and connect(). */
  async open(count) {
    const pairs = Array.from({ length: count }, () => Promise.all([startProxy(), startProxy()]));
    this.#proxies = await Promise.all(pairs);
  }

  argsOf(index) {
    const [port, busPort] = this.#proxies[index].map((proxy) => proxy.port);
    return [
      ...['--cluster-announce-ip', CLIENT, '--cluster-announce-port', port],
      ...['--cluster-announce-bus-port', busPort, '--bind-source-addr', addressOf(index)],
    ].map(String);
  }

  connect(nodes) {
    this.#nodes = nodes;
    for (const [index, { port }] of nodes.entries()) {
      const [clients, bus] = this.#proxies[index];
      clients.moveTo(port);
      bus.moveTo(port + BUS);
    }
  }

  portsOf(node) {
    return this.#proxies[this.#nodes.indexOf(node)].map(({ port }) => port);
  }

  urlOf(node) {
    return this.#proxies[this.#nodes.indexOf(node)][0].url;
  }

  /**
   * Until heal(), nothing passes between these nodes and the others: connections stay open, and what is sent
   * is lost. The nodes' clients stay on both sides, unless `clientIsWith` names the nodes that they still reach.
   */
  partition(side, { clientIsWith = this.#nodes } = {}) {
    const isOnSide = this.#nodes.map((node) => side.includes(node));
    for (const [index, proxies] of this.#proxies.entries()) {
      const lost = new Set(
        this.#nodes
          .map((_, other) => addressOf(other))
          .filter((_, other) => isOnSide[other] !== isOnSide[index]),
      );
      if (!clientIsWith.includes(this.#nodes[index])) lost.add(CLIENT);
      for (const proxy of proxies) proxy.lose((from) => lost.has(from));
    }
  }

  heal() {
    for (const proxy of this.#proxies.flat()) proxy.heal();
  }
}

module.exports = { ClusterNetwork };
