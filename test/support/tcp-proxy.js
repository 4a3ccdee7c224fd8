// A TCP proxy on loopback between clients and servers: its target moves, its links stall, break or are cut short.
'use strict';

const net = require('node:net');
const { listen } = require('./tcp-peers');

const HOST = '127.0.0.1';

/** A connection and the one that it is passed on to. */
class Link {
  #socket;
  #upstream;
  /** How many bytes of replies are left until `end` is called. */
  #left;
  #end;
  #isStalled = false;

  /** @param {{ bytes: number, stalls: boolean }} repliesEnd */
  constructor(socket, port, { bytes, stalls }) {
    this.#left = bytes;
    this.#end = () => (stalls ? this.stall() : socket.end());
    this.#socket = socket;
    this.#upstream = net.connect({ port, host: HOST, noDelay: true });
    this.#upstream.on('error', () => {}); // it closes, and so does the other side
    socket.on('close', () => this.#isStalled || this.#upstream.destroy());
    this.#upstream.on('close', () => this.#isStalled || socket.end());
    socket.pipe(this.#upstream);
    this.#upstream.on('data', (chunk) => this.#reply(chunk));
    if (bytes === 0) this.#end();
  }

  #reply(chunk) {
    this.#socket.write(chunk.subarray(0, this.#left));
    this.#left -= chunk.length;
    if (this.#left <= 0) this.#end();
  }

  /** From now on nothing passes, neither bytes nor that a side has closed. */
  stall() {
    this.#isStalled = true;
    this.#socket.unpipe(this.#upstream).pause();
    this.#upstream.pause();
  }

  destroy() {
    for (const side of [this.#socket, this.#upstream]) side.destroy();
  }

  reset() {
    this.#socket.resetAndDestroy();
  }
}

/**
 * Its `connections` are those that it ever accepted. Links that exist stay as they are, unless a function says
 * that it changes them.
 *
 * @param {number} [port] of the target; it can be given later, before the first connection
 */
async function startProxy(port) {
  const ALL = { bytes: Infinity, stalls: false };
  const links = new Map(); // by the address that they come from
  let target = port;
  let repliesEnd = ALL;
  let isLost = () => false;
  const linksFrom = (address) => links.get(address) ?? new Set();
  const each = (change) => {
    for (const ofOne of links.values()) for (const link of ofOne) change(link);
  };

  const peer = await listen((socket) => {
    const from = socket.remoteAddress;
    const link = new Link(socket, target, repliesEnd);
    links.set(from, linksFrom(from).add(link));
    socket.on('close', () => linksFrom(from).delete(link));
    if (isLost(from)) link.stall();
  });

  return Object.assign(peer, {
    /** New connections lead to this port. */
    moveTo(newTarget) {
      target = newTarget;
    },
    /** Closes all links. */
    drop: () => each((link) => link.destroy()),
    /** The same, but clients see the connection reset, not ended. */
    reset: () => each((link) => link.reset()),
    /** All links stay open and pass nothing any more. New ones work. */
    stall: () => each((link) => link.stall()),
    /** New links end after so many bytes of replies: they close, or with `stalls` stay open and pass nothing. */
    endReplies(bytes, { stalls }) {
      repliesEnd = { bytes, stalls };
    },
    /** Links from the addresses for which this is true, old and new ones, pass nothing. */
    lose(isLostNow) {
      isLost = isLostNow;
      for (const [from, ofOne] of links) if (isLost(from)) for (const link of ofOne) link.stall();
    },
    /** New links work, and the old ones close. */
    heal() {
      isLost = () => false;
      repliesEnd = ALL;
      each((link) => link.destroy());
    },
  });
}

module.exports = { startProxy };
