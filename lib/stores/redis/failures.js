// The failures of a store on Redis, and which of them an error reply or a client's error is.
//
// A failure is { code, toError() }: its Error is only created where somebody sees it, because in an outage onError
// hides thousands of them.
'use strict';

const { failure } = require('../../base/errors');

const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const UNREACHABLE = 'ERR_ROLLGATE_REDIS_UNREACHABLE';
const AUTH = 'ERR_ROLLGATE_REDIS_AUTH';
const CLOSED = 'ERR_ROLLGATE_REDIS_CLOSED';

/** Makes failures of one kind, from what its message needs. `cause` may be a function that makes one. */
function kind(code, messageOf) {
  return (detail, cause) => ({
    code,
    toError: () => failure(code, messageOf(detail), typeof cause === 'function' ? cause() : cause),
  });
}

/** No answer came in time. */
const timeout = kind(TIMEOUT, (ms) => `Redis did not answer within ${ms} ms`);
const timeoutAt = kind(TIMEOUT, ([ms, where]) => `Redis did not answer within ${ms} ms (${where})`);

/** There is no connection, or it was lost before the answer came. */
const unreachable = kind(UNREACHABLE, (why) => {
  return why === undefined ? 'Redis cannot be reached' : `Redis cannot be reached: ${why}`;
});

/** Redis refuses the user or password, or there is none. */
const auth = kind(AUTH, (what) => what);

/** Redis answered with another error, or with an invalid reply. */
const reply = kind('ERR_ROLLGATE_REDIS_REPLY', (what) => what);

/** Too many calls wait for an answer. */
const queueFull = kind('ERR_ROLLGATE_REDIS_QUEUE_FULL', (maxQueue) => {
  return `${maxQueue} calls wait for Redis already (maxQueue)`;
});

/** The client was closed by its owner. */
const closed = kind(CLOSED, () => 'the Redis client is closed');

/** The limiter was closed while its call was pending. */
const closedMeanwhile = kind('ERR_ROLLGATE_CLOSED', () => 'the limiter was closed meanwhile');

/** The server's time is outside of the calendar windows that the call brought: see frame.lua. */
const wrongTime = kind('ERR_ROLLGATE_CLOCK', () => {
  const what = "this process's clock and that of the Redis server differ by more than a window";
  return `${what} of the calendar: set the one that is wrong`;
});

/** Whether the next call would meet the same failure. */
function isOutage({ code }) {
  return [TIMEOUT, UNREACHABLE, AUTH, CLOSED].includes(code);
}

/** Whether the server may have done what was asked, or may do it yet. */
function mayBeDone({ code }) {
  return [TIMEOUT, UNREACHABLE].includes(code);
}

/** Before authentication a server does not even read commands with more than ten arguments. */
const AUTH_REPLY =
  /\b(NOAUTH|WRONGPASS)\b|unauthenticated|invalid password|no password is set|without any password/i;
const PERMISSION_REPLY = /\bNOPERM\b|ACL failure in script|user executing the script can't run/i;

const CLUSTER_REPLY = /^(MOVED|ASK|CROSSSLOT) /;
const CLUSTER_HINT =
  "; this server is a node of a cluster: give 'redis' { cluster: [its URL] } or a cluster client";

/** The failure for an error reply. `isCluster`: whether the client follows the redirections of a cluster. */
function fromReply(message, isCluster, cause) {
  if (AUTH_REPLY.test(message)) {
    return auth(`Redis refuses this user or password: ${message}`, cause);
  }
  if (PERMISSION_REPLY.test(message)) {
    const what = 'Redis does not permit this user what the limiter needs';
    return auth(`${what} (see docs/redis.md#permissions): ${message}`, cause);
  }
  const hint = !isCluster && CLUSTER_REPLY.test(message) ? CLUSTER_HINT : '';
  return reply(`Redis answered with an error: ${message}${hint}`, cause);
}

/** The error for an unknown command repeats its arguments; those of HELLO contain the password. */
function withoutArguments(message) {
  return message.replace(/,? with args beginning with:.*$/s, '');
}

/** The failure for what a server sent to the native client instead of an answer. */
function fromReplyMessage(came, isCluster) {
  const message = withoutArguments(came);
  const cause = () => Object.assign(new Error(message), { name: 'ReplyError' });
  if (/^[A-Z]+ /.test(message)) return fromReply(message, isCluster, cause);
  return reply(`Redis returned an unexpected reply: ${message}`, cause);
}

/** By the names of classes, because the clients' classes are not available here. */
function isKindOf(error, ...names) {
  if (names.includes(error?.name)) return true;
  for (let at = Object(error); at !== null; at = Object.getPrototypeOf(at)) {
    if (names.includes(at.constructor?.name)) return true;
  }
  return false;
}

/** The message of anything that was thrown, as a string; undefined without one. */
function messageOf(error) {
  try {
    return error?.message === undefined ? undefined : String(error.message);
  } catch {
    return undefined; // the error's own code threw
  }
}

/**
 * The failure for anything that a client rejected with.
 *
 * @param {{ commandTimeout: number, maxQueue: number, isCluster: boolean, isClosed: () => boolean,
 *   hint: () => string | undefined }} circumstances
 */
function fromClientError(error, { commandTimeout, maxQueue, isCluster, isClosed, hint }) {
  // A cluster client that finds no node reports the last node's error.
  const isReply = (one) => isKindOf(one, 'ReplyError', 'ErrorReply');
  const replied = [error, error?.lastNodeError].find(isReply);
  if (replied !== undefined) {
    return fromReply(withoutArguments(messageOf(replied) ?? ''), isCluster, replied);
  }
  if (isClosed()) return closed(undefined, error);
  const message = messageOf(error);
  if (message === 'Command timed out' || isKindOf(error, 'TimeoutError')) {
    return timeout(commandTimeout, error);
  }
  if (message === 'The queue is full') return queueFull(maxQueue, error);
  return unreachable(hint() ?? message, error);
}

module.exports = {
  auth,
  closedMeanwhile,
  fromClientError,
  fromReplyMessage,
  isOutage,
  mayBeDone,
  messageOf,
  queueFull,
  reply,
  timeout,
  timeoutAt,
  unreachable,
  wrongTime,
};
