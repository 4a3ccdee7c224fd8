// The map of a Redis Cluster: which node owns which hash slots, as its nodes say.
'use strict';

const failures = require('./failures');
const { addressName } = require('./route');

const MOST_ASKED = 10;

function shuffled(names) {
  const order = names.map((name) => [Math.random(), name]);
  return order.sort(([a], [b]) => a - b).map(([, name]) => name);
}

/** A node that does not know its own address is the one that was asked. */
function nameOf([host, port], asked) {
  const isUnknown = host === '' || host === '?' || host === null;
  const isHost = isUnknown || typeof host === 'string';
  if (!isHost || !Number.isInteger(port)) throw new TypeError('no address');
  return isUnknown ? asked.replace(/\d+$/, String(port)) : addressName({ host, port });
}

/** [first, last, node] for each range of the reply to CLUSTER SLOTS. */
function readRanges(reply, asked) {
  try {
    if (reply.length === 0) throw new TypeError('no range');
    return reply.map(([first, last, node]) => {
      const isRange = Number.isInteger(first) && first >= 0 && first <= last && last < 16_384;
      if (!isRange) throw new TypeError('no range');
      return [first, last, nameOf(node, asked)];
    });
  } catch {
    throw failures.reply('CLUSTER SLOTS: no list of slots');
  }
}

/**
 * A function that asks several nodes for the map and gives the best answer to the client. A node that knows a newer
 * epoch of the cluster is trusted at once. Otherwise the best answer is used, because an isolated node also answers.
 */
function createMapFinder(client, seeds) {
  let epoch = -1;
  let isAsking = false;
  let isWantedAgain = false;

  /** Connected nodes first; the seeds in case that all nodes have been replaced. */
  function sources() {
    const { owners, connected } = client.nodes();
    const names = new Set([...shuffled(connected), ...shuffled([...seeds, ...owners])]);
    return [...names].slice(0, MOST_ASKED);
  }

  async function ask(node) {
    const [slots, info] = await Promise.all([
      client.command(['CLUSTER', 'SLOTS'], { node }),
      client.command(['CLUSTER', 'INFO'], { node }).catch(() => ''), // may be forbidden
    ]);
    const [, known = 0] = /^cluster_current_epoch:(\d+)/m.exec(info) ?? [];
    const isOk = !/^cluster_state:fail/m.test(info);
    return { ranges: readRanges(slots, node), epoch: Number(known), isOk, isUsed: false };
  }

  function use(map) {
    map.isUsed = true;
    epoch = map.epoch;
    client.setMap(map.ranges);
  }

  return async function find() {
    isWantedAgain = isAsking;
    if (isAsking) return;
    isAsking = true;
    const maps = [];
    const failed = [];
    const askAndUse = async (node) => {
      try {
        const map = await ask(node);
        maps.push(map);
        if (map.isOk && map.epoch > epoch) use(map);
      } catch (failure) {
        failed.push(failure);
      }
    };
    await Promise.all(sources().map(askAndUse));
    isAsking = false;
    const [best] = maps.sort((a, b) => b.isOk - a.isOk || b.epoch - a.epoch);
    if (best === undefined) client.refuseMap(failed[0]);
    else if (best.epoch !== epoch || !best.isUsed) use(best);
    if (isWantedAgain) find();
  };
}

module.exports = { createMapFinder };
