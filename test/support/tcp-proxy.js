// A TCP proxy on loopback between clients and servers: its target moves, its links stall, break, are slow or cut short.
'use strict';

const net = require('node:net');
const { Transform } = require('node:stream');
const { listen } = require('./tcp-peers');

const HOST = '127.0.0.1';

/** Passes on what `source` sends, in its order, each chunk as many milliseconds later as `delayOf` says then. */
function delayed(source, delayOf) {
  if (!delayOf) return source;
  const later = new Transform({
    transform(chunk, _encoding, done) {
      const ms = delayOf();
      if (ms > 0) setTimeout(done, ms, null, chunk);
      else done(null, chunk);
    },
  });
  later.on('error', () => {}); // a side is gone
  return source.pipe(later);
}

/** A connection and the one that it is passed on to. */
class Link {
  #socket;
  #upstream;
  /** What the two send, as it is passed on. */
  #requests;
  #replies;
  /** How many bytes of replies are left until `end` is called. */
  #left;
  #end;
  #isStalled = false;

  /** @param {{ bytes: number, stalls: boolean }} repliesEnd */
  constructor(socket, port, { bytes, stalls }, delayOf) {
    this.#left = bytes;
    this.#end = () => (stalls ? this.stall() : socket.end());
    this.#socket = socket;
    this.#upstream = net.connect({ port, host: HOST, noDelay: true });
    this.#upstream.on('error', () => {}); // it closes, and so does the other side
    this.#requests = delayed(socket, delayOf);
    this.#replies = delayed(this.#upstream, delayOf);
    socket.on('close', () => this.#isStalled || this.#endUpstream());
    this.#upstream.on('close', () => this.#isStalled || socket.end());
    this.#requests.pipe(this.#upstream);
    this.#replies.on('data', (chunk) => this.#reply(chunk));
    if (bytes === 0) this.#end();
  }

  /** At once, unless something is still on its way there. */
  #endUpstream() {
    if (this.#requests !== this.#socket && this.#requests.writableLength > 0) this.#requests.end();
    else this.#upstream.destroy();
  }

  #reply(chunk) {
    this.#socket.write(chunk.subarray(0, this.#left));
    this.#left -= chunk.length;
    if (this.#left <= 0) this.#end();
  }

  /** From now on nothing passes, neither bytes nor that a side has closed. */
  stall() {
    this.#isStalled = true;
    this.#requests.unpipe(this.#upstream).pause();
    this.#replies.pause();
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
 * @param {() => number} [options.delayOf] for how many milliseconds to hold a chunk, asked for each in both directions
 */
async function startProxy(port, { delayOf } = {}) {
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
    const link = new Link(socket, target, repliesEnd, delayOf);
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
