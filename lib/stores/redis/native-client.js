// The native client: its calls by number, its failures as errors, and what it asks for: routes and maps.
'use strict';

const { promisify } = require('node:util');
const { decisionLength } = require('../../base/decision');
const { failure, optionError } = require('../../base/errors');
const { loadBinding } = require('../../native');
const { createMapFinder } = require('./cluster-map');
const failures = require('./failures');
const { readTimeLeft, readOne } = require('./script');
const { defaultAuthorities } = require('./tls');

/** Room for the results of many calls; the rest arrives in further calls of settle. */
const MOST_NUMBERS = 4096;
const TOO_MANY = -1;
const FEW_LISTENERS = 64;
/** The number of no node: for the failure to find a map. */
const NO_NODE = 0;

const WITHOUT_LIBUV = { bun: 'Bun', deno: 'Deno' };

function unsupported(why, instead) {
  return failure('ERR_ROLLGATE_UNSUPPORTED', `the native Redis client ${why}: ${instead}`);
}

const TAKE_A_CLIENT = "give 'redis' a client of ioredis or redis (node-redis)";

/** @throws Error ERR_ROLLGATE_UNSUPPORTED if this process has no native client, or none with TLS */
function assertSupported({ tls }) {
  const runtime = Object.keys(WITHOUT_LIBUV).find((name) => process.versions[name] !== undefined);
  if (runtime !== undefined) {
    // The addon contains the client, but its first call into libuv ends the process.
    throw unsupported(`needs libuv, which ${WITHOUT_LIBUV[runtime]} does not have`, TAKE_A_CLIENT);
  }
  const { createRedisClient, redisHasTls, isWasm } = loadBinding();
  if (isWasm) {
    throw unsupported(
      'needs the native addon, and rollgate runs as WebAssembly here',
      TAKE_A_CLIENT,
    );
  }
  if (createRedisClient === undefined) {
    throw unsupported(
      "is not in this build, because hiredis, pkg-config or libuv's uv.h was missing when it was built",
      `install hiredis, pkg-config and libuv's headers and run 'npm rebuild rollgate', or ${TAKE_A_CLIENT}`,
    );
  }
  if (tls === undefined || redisHasTls) return;
  throw unsupported(
    'has no TLS here, because this program does not export OpenSSL 3, as Node.js does',
    `${TAKE_A_CLIENT} that connects with TLS, or go through a TLS tunnel on this host`,
  );
}

/** By the checked option tls, because it takes long to read all authorities that Node trusts. */
const tlsContexts = new WeakMap();

function tlsContextOf(tls) {
  if (!tlsContexts.has(tls)) {
    const ca = tls.ca ?? defaultAuthorities();
    tlsContexts.set(tls, loadBinding().createTlsContext({ ...tls, ca }));
  }
  return tlsContexts.get(tls);
}

/** Errors of the native side belong to another realm, so they are created again here. */
function createFunctions(server, options, callbacks) {
  assertSupported(options);
  const { connectTimeout, commandTimeout, maxQueue, retry } = options;
  const { min: retryMin, max: retryMax } = retry;
  try {
    const tls = options.tls && tlsContextOf(options.tls);
    const own = { server, connectTimeout, commandTimeout, maxQueue, retryMin, retryMax, tls };
    return loadBinding().createRedisClient(own, callbacks);
  } catch (error) {
    if (error.code !== 'ERR_ROLLGATE_OPTION') throw error;
    throw optionError('redis.tls', error.message);
  }
}

/**
 * The functions of the native side (see addon.h), and those below. Calls end with `done(failed, result, integer?)`,
 * where `failed` is as in failures.js.
 *
 * @param {object} options as readConnectionOptions returns them
 * @param {(node: string) => Promise<object>} findRoute finds a node for connect() of the native side
 * @param {string} server names the only server in messages; '' for a cluster
 * @param {string[]} [seeds] the nodes of a cluster that are asked for its map first
 */
function createNativeClient(options, findRoute, server, seeds) {
  const { commandTimeout, maxQueue } = options;
  /** The callback of each pending call and whom it belongs to, by its number on the native side. */
  const waiting = [];
  const owners = [];
  /** The callbacks of calls being settled, because new calls may reuse their numbers meanwhile. */
  const settled = [];
  const brief = new Float64Array(2);
  /** Why a node has no route, by its number. */
  const notFound = new Map();
  let password; // of the latest attempt to connect
  let listeners = [];
  let mostListeners = FEW_LISTENERS; // before collected ones are dropped

  function take(call) {
    const done = waiting[call];
    waiting[call] = undefined;
    owners[call] = undefined;
    return done;
  }

  function settle(count) {
    const { numbers } = callbacks;
    for (let i = 0, at = 0; i < count; i++, at += 2 + numbers[at + 1]) {
      settled[i] = take(numbers[at]);
    }
    let next = 0;
    for (let i = 0; i < count; i++) {
      const done = settled[i];
      settled[i] = undefined;
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

  /** A server may repeat what it was sent. */
  function withoutPassword(message) {
    return password === undefined ? message : message.replaceAll(password, '***');
  }

  function failureOf(reason, message) {
    switch (reason) {
      case 'timeout':
        return failures.timeoutAt([commandTimeout, message]);
      case 'unreachable':
        return failures.unreachable(message, () => new Error(message));
      case 'notFound':
        return notFound.get(Number(message));
      case 'closed':
        return failures.closedMeanwhile();
      default:
        return failures.fromReplyMessage(withoutPassword(message), server === '');
    }
  }

  /** Registers `done` for the call of this number. */
  function wait(call, owner, done) {
    if (call === TOO_MANY) {
      process.nextTick(done, failures.queueFull(maxQueue));
    } else {
      waiting[call] = done;
      owners[call] = owner;
    }
  }

  // The native side does not own this; it references it while calls are pending.
  const callbacks = {
    numbers: new Float64Array(MOST_NUMBERS),
    settle,
    fail(reason, message, count) {
      const failed = Array.from(callbacks.numbers.subarray(0, count), take);
      const why = failureOf(reason, message);
      for (const done of failed) done(why);
    },
    reply: (call, value) => take(call)(null, value),
    changed(isUp) {
      for (const listener of listeners) listener.deref()?.(isUp);
    },
    async find(node, attempt, name) {
      try {
        const route = await findRoute(name);
        password = route.greeting.find(([command]) => command === 'AUTH')?.at(-1);
        native.connect(node, attempt, route);
      } catch (error) {
        const isFailure = error?.toError !== undefined; // or an exception of the user's addressMap
        notFound.set(node, isFailure ? error : failures.unreachable(error?.message, error));
        native.connect(node, attempt);
      }
    },
    findMap: () => findMap(),
  };
  const native = createFunctions(server, options, callbacks);

  const client = {
    ...native,

    refuseMap(failed) {
      notFound.set(NO_NODE, failed);
      native.setMap();
    },

    /** Promises the reply to a command, for a node of a cluster or for the server of a key. */
    command: promisify((words, { node = '', key = '', owner }, done) => {
      wait(native.command(words, node, key), owner, done);
    }),

    /** Registers `done` for a call that a limiter of createLimiter made. `owner` is the argument of abandon(). */
    wait,

    createLimiter(program) {
      const length = 2 + decisionLength(program.windows);
      if (callbacks.numbers.length < length) callbacks.numbers = new Float64Array(length);
      return native.createLimiter(program);
    },

    /** Fails the pending calls of an owner that is closed. The server may count them. */
    abandon(owner) {
      for (const [call, one] of owners.entries()) {
        if (one !== owner) continue;
        const done = take(call);
        waiting[call] = () => {};
        done(failureOf('closed'));
      }
    },

    /** Calls back with whether there is a connection, whenever that changes. Does not keep `callback` alive. */
    whenChanged(callback) {
      listeners.push(new WeakRef(callback));
      if (listeners.length < mostListeners) return;
      listeners = listeners.filter((listener) => listener.deref() !== undefined);
      mostListeners = Math.max(FEW_LISTENERS, 2 * listeners.length);
    },
  };
  const findMap = seeds && createMapFinder(client, seeds);
  return client;
}

module.exports = { createNativeClient };
