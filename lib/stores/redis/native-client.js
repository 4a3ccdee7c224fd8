// The client for URLs: Node's sockets and timers around the native engine, which decides what goes over them.
'use strict';

const { AsyncResource } = require('node:async_hooks');
const { clearTimeout, setImmediate, setTimeout } = require('node:timers');
const { promisify } = require('node:util');
const { decisionLength } = require('../../base/decision');
const { failure } = require('../../base/errors');
const { loadBinding } = require('../../native');
const { LONGEST_TIMER } = require('../../base/timers');
const { createMapFinder } = require('./cluster-map');
const failures = require('./failures');
const { readTimeLeft, readOne } = require('./script');
const { openSocket } = require('./socket');
const { contextOf } = require('./tls');

// Taken now, as the timers are, because tests may replace it later.
const { nextTick } = process;

/** Its callbacks are microtasks. queueMicrotask would make an AsyncResource for each. */
const resolved = Promise.resolve();

/** Room for the results of many calls; the rest arrives in further calls of settle. */
const MOST_NUMBERS = 4096;
/** Room for the bytes of a turn; the rest is written apart. */
const MOST_BYTES = 65_536;
const TOO_MANY = -1;
const FEW_LISTENERS = 64;
/** The number of no node: for the failure to find a map. */
const NO_NODE = 0;

const TAKE_A_CLIENT = "give 'redis' a client of ioredis or redis (node-redis)";

function unsupported(why, instead) {
  return failure('ERR_ROLLGATE_UNSUPPORTED', `the native Redis client ${why}: ${instead}`);
}

/** @throws Error ERR_ROLLGATE_UNSUPPORTED if this process has no native client */
function createEngine(options, callbacks) {
  const { createRedisClient, isWasm } = loadBinding();
  if (isWasm) {
    throw unsupported(
      'needs the native addon, and rollgate runs as WebAssembly here',
      TAKE_A_CLIENT,
    );
  }
  if (createRedisClient === undefined) {
    throw unsupported(
      'is not in this build, because hiredis or pkg-config was missing when it was built',
      `install hiredis and pkg-config and run 'npm rebuild rollgate', or ${TAKE_A_CLIENT}`,
    );
  }
  return createRedisClient(options, callbacks);
}

/** Calls end with `done(failed, result, integer?)`, where `failed` is as in failures.js. */
class NativeClient {
  #options;
  #findRoute;
  #findMap;
  #isCluster;
  #engine; // see addon.h
  /** The callback of each pending call and whom it belongs to, by its number on the native side. */
  #waiting = [];
  #owners = [];
  #pending = 0;
  /** The callbacks of calls that are being delivered, because new calls may reuse their numbers meanwhile. */
  #delivered = [];
  #brief = new Float64Array(2);
  /** By the number of the node: its latest route with the address in use, its socket, why it has no route. */
  #routes = new Map();
  #sockets = new Map();
  #notFound = new Map();
  /** By the number of the node: the attempt to connect that looks for a route. */
  #attempts = new Map();
  #password; // of the latest attempt to connect
  #hasTurn = false;
  #awaitsCallers = false;
  #timer;
  #timerDue = Number.POSITIVE_INFINITY;
  #resource = new AsyncResource('rollgate:redis', { requireManualDestroy: true });
  #isClosed = false;
  #listeners = [];
  #mostListeners = FEW_LISTENERS; // before collected ones are dropped
  #callbacks;

  /**
   * @param {object} options as readConnectionOptions returns them
   * @param {(node: string) => Promise<object>} findRoute finds a node
   * @param {string} server names the only server in messages; '' for a cluster
   * @param {string[]} [seeds] the nodes of a cluster that are asked for its map first
   */
  constructor(options, findRoute, server, seeds) {
    const { connectTimeout, commandTimeout, maxQueue, retry, tls } = options;
    this.#options = options;
    this.#findRoute = findRoute;
    this.#isCluster = server === '';
    this.#findMap = seeds && createMapFinder(this, seeds);
    // The native side does not own this.
    this.#callbacks = {
      numbers: new Float64Array(MOST_NUMBERS),
      output: Buffer.allocUnsafeSlow(MOST_BYTES),
      find: (...args) => this.#find(...args),
      findMap: () => this.#findMap(),
      open: (...args) => this.#open(...args),
      write: (...args) => this.#write(...args),
      close: (node) => this.#close(node),
      forget: (node) => {
        for (const known of [this.#routes, this.#notFound, this.#attempts]) known.delete(node);
      },
      turn: () => this.#scheduleTurn(),
      settle: (count) => this.#deliver(count),
      fail: (...args) => this.#fail(...args),
      reply: (call, value) => this.#take(call)(null, value),
      changed: (isUp) => {
        for (const listener of this.#listeners) listener.deref()?.(isUp);
      },
    };
    const hasTls = tls !== undefined;
    const { min: retryMin, max: retryMax } = retry;
    const own = { server, connectTimeout, commandTimeout, maxQueue, retryMin, retryMax, hasTls };
    this.#engine = createEngine(own, this.#callbacks);
    if (hasTls) contextOf('redis.tls', tls); // now, so that invalid options throw
  }

  /** Arms the timer for what a function of the engine returns: when onTime must be called. */
  #arm(due) {
    if (due >= this.#timerDue) return;
    clearTimeout(this.#timer);
    this.#timerDue = due;
    const delay = Math.min(Math.max(0, due - this.#engine.now()), LONGEST_TIMER);
    this.#timer = setTimeout(this.#onTime, delay);
    if (this.#pending === 0) this.#timer.unref();
  }

  #onTime = () => {
    this.#timerDue = Number.POSITIVE_INFINITY;
    this.#arm(this.#engine.onTime());
  };

  /** Calls are sent once the event loop has handled what arrived, many at once. */
  #scheduleTurn() {
    if (this.#hasTurn) return;
    this.#hasTurn = true;
    setImmediate(this.#onTurn);
  }

  /** Calls that callers make in response to results are sent at once, before they get more. */
  #waitForCallers = () => nextTick(this.#onMore);

  #onMore = () => {
    this.#awaitsCallers = false;
    this.#arm(this.#engine.onMore());
  };

  #onTurn = () => {
    this.#hasTurn = false;
    this.#arm(this.#engine.onTurn());
  };

  #open(node, number, index) {
    const route = this.#routes.get(node);
    route.used = route.addresses[index];
    const tell = (what) => (detail, count) =>
      this.#arm(this.#engine[what](node, number, detail, count));
    const on = {
      accepted: tell('onAccepted'),
      connected: tell('onConnected'),
      received: tell('onBytes'),
      writable: tell('onWritable'),
      ended: tell('onEnd'),
    };
    const place = { ...route, address: route.used };
    const open = () => openSocket(place, this.#options.tls, on);
    this.#sockets.set(node, this.#resource.runInAsyncScope(open));
  }

  /** Returns whether the socket takes more. */
  #write(node, count) {
    const socket = this.#sockets.get(node);
    if (socket === undefined) return false; // closed by a caller meanwhile
    const isLate = this.#options.tls !== undefined; // a socket of node:tls never writes at once
    const bytes = this.#callbacks.output.subarray(0, count);
    const isWritable = socket.write(isLate ? Buffer.from(bytes) : bytes);
    if (!isLate && socket.writableLength > 0) {
      this.#callbacks.output = Buffer.allocUnsafeSlow(MOST_BYTES);
    }
    return isWritable;
  }

  #close(node) {
    this.#sockets.get(node)?.destroy();
    this.#sockets.delete(node);
  }

  async #find(node, attempt, name) {
    this.#attempts.set(node, attempt);
    try {
      const route = await this.#resource.runInAsyncScope(this.#findRoute, null, name);
      if (attempt !== this.#attempts.get(node)) return; // the native side has given it up
      this.#password = route.greeting.find(([command]) => command === 'AUTH')?.at(-1);
      // Of several servers, the one that was lost is tried last: it may not be the master any more.
      const lost = this.#routes.get(node)?.used;
      route.addresses.sort((a, b) => (a === lost) - (b === lost));
      this.#routes.set(node, route);
      this.#arm(this.#engine.connect(node, attempt, route));
    } catch (error) {
      if (attempt !== this.#attempts.get(node)) return;
      const isFailure = error?.toError !== undefined; // or an exception of the user's addressMap
      const why = isFailure ? error : failures.unreachable(error?.message, error);
      this.#notFound.set(node, why);
      this.#arm(this.#engine.connect(node, attempt));
    }
  }

  #take(call) {
    const done = this.#waiting[call];
    this.#waiting[call] = undefined;
    this.#owners[call] = undefined;
    this.#pending -= 1;
    if (this.#pending === 0) this.#timer?.unref();
    return done;
  }

  #deliver(count) {
    if (!this.#awaitsCallers) resolved.then(this.#waitForCallers);
    this.#awaitsCallers = true;
    const { numbers } = this.#callbacks;
    const brief = this.#brief;
    for (let i = 0, at = 0; i < count; i++, at += 2 + numbers[at + 1]) {
      this.#delivered[i] = this.#take(numbers[at]);
    }
    let next = 0;
    for (let i = 0; i < count; i++) {
      const done = this.#delivered[i];
      this.#delivered[i] = undefined;
      const first = next + 2;
      next = first + numbers[next + 1];
      if (next - first > 1) {
        const own = numbers.subarray(first, next);
        done(readOne(own, 0, own), own);
      } else {
        done(readTimeLeft(numbers[first], brief), brief, numbers[first]);
      }
    }
  }

  #fail(reason, message, count) {
    const failed = Array.from(this.#callbacks.numbers.subarray(0, count), (call) =>
      this.#take(call),
    );
    const why = this.#failureOf(reason, message);
    for (const done of failed) done(why);
  }

  #failureOf(reason, message) {
    switch (reason) {
      case 'timeout':
        return failures.timeoutAt([this.#options.commandTimeout, message]);
      case 'unreachable':
        return failures.unreachable(message, () => new Error(message));
      case 'notFound':
        return this.#notFound.get(Number(message)) ?? failures.unreachable();
      case 'closed':
        return failures.closedMeanwhile();
      default:
        return failures.fromReplyMessage(this.#withoutPassword(message), this.#isCluster);
    }
  }

  /** A server may repeat what it was sent. */
  #withoutPassword(message) {
    return this.#password === undefined ? message : message.replaceAll(this.#password, '***');
  }

  /** Registers `done` for a call that a limiter of createLimiter made. `owner` is the argument of abandon(). */
  wait(call, owner, done) {
    if (call === TOO_MANY) {
      const { maxQueue } = this.#options;
      nextTick(done, this.#isClosed ? failures.closedMeanwhile() : failures.queueFull(maxQueue));
      return;
    }
    this.#waiting[call] = done;
    this.#owners[call] = owner;
    this.#pending += 1;
    if (this.#pending === 1) this.#timer?.ref();
    if (!this.#awaitsCallers) this.#scheduleTurn();
  }

  /** Promises the reply to a command, for a node of a cluster or for the server of a key. */
  command = promisify((words, { node = '', key = '', owner }, done) => {
    this.wait(this.#engine.command(words, node, key), owner, done);
  });

  /** Fails the pending calls of an owner that is closed. The server may count them. */
  abandon(owner) {
    for (const [call, one] of this.#owners.entries()) {
      if (one !== owner) continue;
      const done = this.#waiting[call];
      this.#owners[call] = undefined;
      this.#waiting[call] = () => {};
      done(failures.closedMeanwhile());
    }
  }

  /** The function `ask` of a limiter with this script. Its keys are `keyPrefix{id}keySuffix`. */
  createLimiter({ keyPrefix, keySuffix }, { source, sha1 }, windowCount) {
    const length = 2 + decisionLength(windowCount);
    if (this.#callbacks.numbers.length < length) {
      this.#callbacks.numbers = new Float64Array(length);
    }
    return this.#engine.createLimiter(keyPrefix, keySuffix, source, sha1);
  }

  setMap(ranges) {
    this.#arm(this.#engine.setMap(ranges));
  }

  refuseMap(failed) {
    this.#notFound.set(NO_NODE, failed);
    this.#arm(this.#engine.setMap());
  }

  nodes() {
    return this.#engine.nodes();
  }

  nodeOf(key) {
    return this.#engine.nodeOf(key);
  }

  roomAt(node) {
    return this.#engine.roomAt(node);
  }

  stats() {
    return this.#engine.stats();
  }

  /** Calls back with whether there is a connection, whenever that changes. Does not keep `callback` alive. */
  whenChanged(callback) {
    this.#listeners.push(new WeakRef(callback));
    if (this.#listeners.length < this.#mostListeners) return;
    this.#listeners = this.#listeners.filter((listener) => listener.deref() !== undefined);
    this.#mostListeners = Math.max(FEW_LISTENERS, 2 * this.#listeners.length);
  }

  close() {
    this.#isClosed = true;
    this.#engine.close();
    clearTimeout(this.#timer);
    this.#resource.emitDestroy();
  }
}

module.exports = { NativeClient };
