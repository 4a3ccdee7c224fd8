// The backend of the native client: hiredis on Node's event loop, the checks of one turn in few commands.
'use strict';

const { promisify } = require('node:util');
const { decisionLength } = require('../decision');
const { failure, optionError } = require('../errors');
const { loadAddon } = require('../native');
const { createCommands } = require('./commands');
const failures = require('./failures');
const { readNativeTls } = require('./connection-options');
const { createPolicyArguments, readOne, readRefund, readTimeLeft } = require('./script');
const SCRIPTS = require('./scripts');

/** Room for the results of many calls; the rest arrives in further calls of settle. */
const MOST_NUMBERS = 4096;
const TOO_MANY = -1;
const MOST_OF_ONE_TURN = 5000;

const ERROR_REPLY = /^[A-Z]+ /;

/** The failure for a kind of error of the native side. */
function failureOf(kind, message, { commandTimeout }) {
  if (kind === 'timeout') return failures.timeout(commandTimeout);
  if (kind === 'closed') return failure('ERR_ROLLGATE_CLOSED', 'the limiter was closed meanwhile');
  if (kind === 'unreachable') return failures.unreachable(new Error(message));
  if (ERROR_REPLY.test(message)) return failures.fromReplyError(message);
  return failures.reply(`Redis gave something that is no answer: ${message}`, new Error(message));
}

const WITHOUT_LIBUV = { bun: 'Bun', deno: 'Deno' };

/** @throws Error ERR_ROLLGATE_UNSUPPORTED if there is no native client */
function assertNativeClient() {
  const runtime = Object.keys(WITHOUT_LIBUV).find((name) => process.versions[name] !== undefined);
  if (runtime !== undefined) {
    // The addon contains the client, but its first call into libuv ends the process.
    throw failure(
      'ERR_ROLLGATE_UNSUPPORTED',
      `the native Redis client needs libuv, which ${WITHOUT_LIBUV[runtime]} does not have: give 'redis' a ` +
        'client of ioredis or redis (node-redis)',
    );
  }
  if (loadAddon().createRedisClient !== undefined) return;
  throw failure(
    'ERR_ROLLGATE_UNSUPPORTED',
    "the native Redis client is not in this build, because hiredis, pkg-config or libuv's uv.h was missing " +
      "when it was built: install hiredis, pkg-config and libuv's headers and run 'npm rebuild rollgate', or give " +
      "'redis' a client of ioredis or redis (node-redis)",
  );
}

/** Errors of the native side belong to another realm, so they are created again here. */
function createClient(options, keep) {
  try {
    return loadAddon().createRedisClient(options, keep);
  } catch (error) {
    if (error.code !== 'ERR_ROLLGATE_OPTION') throw error;
    throw optionError('redis.tls', error.message);
  }
}

/** A backend of remote/store.js; `options` as for createClientBackend. */
function createNativeBackend({ connection, policy, namespace }) {
  const length = decisionLength(policy.windows.length);
  const { args: policyArgs, within: policyWithin } = createPolicyArguments(policy);
  const brief = new Float64Array(length);
  /** The callback of each pending call, by its number on the native side. */
  const waiting = [];
  /** The callbacks of calls being settled, because new calls may reuse their numbers meanwhile. */
  const settled = [];

  function take(call) {
    const done = waiting[call];
    waiting[call] = undefined;
    return done;
  }

  // The native side does not own this; it references it while calls are pending.
  const keep = {
    numbers: new Float64Array(Math.max(MOST_NUMBERS, 2 + length)),

    settle(count) {
      const { numbers } = keep;
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
          done(readOne(own, own, 0, own.length), own);
        } else {
          done(readTimeLeft(numbers[first], brief), brief, numbers[first]);
        }
      }
    },

    fail(kind, message, count) {
      const failed = Array.from(keep.numbers.subarray(0, count), take);
      for (const done of failed) done(failureOf(kind, message, connection));
    },

    reply(call, value) {
      take(call)(null, value);
    },

    changed() {},
  };

  const { host, port, path, cluster, retry } = connection;
  const functions = createClient(
    {
      endpoints: (cluster ?? [{ host, port, path }]).map((seed) => ({ path: '', ...seed })),
      isCluster: cluster !== undefined,
      username: connection.username ?? '',
      password: connection.password ?? '',
      name: connection.connectionName ?? '',
      db: connection.db,
      connectTimeout: connection.connectTimeout,
      commandTimeout: connection.commandTimeout,
      maxQueue: connection.maxQueue,
      retryMin: retry.min,
      retryMax: retry.max,
      keyPrefix: namespace,
      script: SCRIPTS[policy.algorithm],
      policy: policyArgs,
      windows: policy.windows.length,
      tls: readNativeTls(connection.tls),
    },
    keep,
  );

  /** Registers `done(error, result, integer?)` for the call of this number. */
  function wait(call, done) {
    if (call === TOO_MANY) {
      process.nextTick(done, failures.queueFull(connection.maxQueue));
    } else {
      waiting[call] = done;
    }
  }

  const resultOf = promisify(wait);
  const adapter = {
    isCluster: cluster !== undefined,
    send: (key, args) => resultOf(functions.command(args, '', key)),
    async masters() {
      await commands.probe(''); // a cluster's nodes are known once one has answered
      return functions.nodes().map((node) => ({
        send: (args) => resultOf(functions.command(args, node, '')),
      }));
    },
  };
  const ask = async (send, args) => send(args); // the native side has the deadlines
  const commands = createCommands({ adapter, ask, keyStart: `${namespace}{` });

  function attempt(id, cost, records, full, now, done, max) {
    const call = policyWithin
      ? functions.attempt(id, cost, records, full, now, policyWithin(max, records))
      : functions.attempt(id, cost, records, full, now);
    wait(call, done);
  }

  /** The numbers are valid in the callback only. */
  const attemptInto = promisify((all, place, id, now, done) => {
    attempt(id, 1, true, true, now, (error, numbers) => {
      if (error === null) all.set(numbers, place * length);
      done(error);
    });
  });

  return {
    ...commands,

    detectedClientType: 'hiredis',
    keep,
    attempt,

    /** In turns of as many as may be pending at once. */
    async attemptMany(ids, now) {
      const all = new Float64Array(ids.length * length);
      for (let first = 0; first < ids.length; ) {
        const free = connection.maxQueue - functions.stats().pending;
        const turn = ids.slice(first, first + Math.min(connection.maxQueue, MOST_OF_ONE_TURN));
        // Checked before any of them is recorded.
        if (turn.length > free) throw failures.queueFull(connection.maxQueue);
        await Promise.all(turn.map((id, i) => attemptInto(all, first + i, id, now)));
        first += turn.length;
      }
      return all;
    },

    async refund(id, { at, cost, generation }, now) {
      const call = functions.refund(id, at, cost, generation, now);
      const integerOf = promisify((done) =>
        wait(call, (error, _, integer) => done(error, integer)),
      );
      return readRefund([await integerOf()]);
    },

    /** Calls back with whether there is a connection, whenever that changes. */
    whenChanged(callback) {
      keep.changed = callback;
    },

    stats: () => functions.stats(),

    async close() {
      functions.close();
    },
  };
}

module.exports = { assertNativeClient, createNativeBackend };
