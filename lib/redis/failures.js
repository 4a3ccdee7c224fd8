// The errors of a store on Redis: a function for each kind, and the kind of a client's error.
'use strict';

const { failure } = require('../errors');

/** No answer came in time. */
function timeout(commandTimeout, cause) {
  return failure(
    'ERR_ROLLGATE_REDIS_TIMEOUT',
    `Redis did not answer within ${commandTimeout} ms`,
    cause,
  );
}

/** There is no connection, or it was lost before the answer came. */
function unreachable(cause, hint) {
  const why = hint ?? cause?.message;
  const message = why === undefined ? 'Redis cannot be reached' : `Redis cannot be reached: ${why}`;
  return failure('ERR_ROLLGATE_REDIS_UNREACHABLE', message, cause);
}

/** Redis refuses the user or password. */
function auth(cause) {
  return failure(
    'ERR_ROLLGATE_REDIS_AUTH',
    `Redis refuses this user or password: ${cause.message}`,
    cause,
  );
}

/** Redis answered with another error, or with an invalid reply. */
function reply(what, cause) {
  return failure('ERR_ROLLGATE_REDIS_REPLY', what, cause);
}

/** Too many calls wait for an answer. */
function queueFull(maxQueue, cause) {
  return failure(
    'ERR_ROLLGATE_REDIS_QUEUE_FULL',
    `${maxQueue} calls wait for Redis already (maxQueue)`,
    cause,
  );
}

/** The client was closed by its owner, or the connection for good. */
function closed(cause) {
  return failure('ERR_ROLLGATE_REDIS_CLOSED', 'the Redis client is closed', cause);
}

/** Before authentication a server does not even read commands with more than ten arguments. */
const AUTH_REPLY =
  /\b(NOAUTH|WRONGPASS|NOPERM)\b|unauthenticated|invalid password|no password is set|without any password|user executing the script can't run/i;

/** The error for an unknown command repeats its arguments; those of HELLO contain the password. */
function withoutArguments(message) {
  return message.replace(/,? with args beginning with:.*$/s, '');
}

const OUTAGE_CODES = ['TIMEOUT', 'UNREACHABLE', 'AUTH', 'CLOSED'].map(
  (kind) => `ERR_ROLLGATE_REDIS_${kind}`,
);

/** Whether the next call would meet the same failure. */
function isOutage(error) {
  return OUTAGE_CODES.includes(error.code);
}

const CLUSTER_REPLY = /^(MOVED|ASK|CROSSSLOT) /;
const CLUSTER_HINT =
  "; this server is a node of a cluster: give 'redis' { cluster: [its URL] } or a cluster client";

/** The failure for an error reply, given its message or a client's Error. */
function fromReplyError(came) {
  const cause =
    typeof came === 'string'
      ? Object.assign(new Error(withoutArguments(came)), { name: 'ReplyError' })
      : came;
  if (AUTH_REPLY.test(cause.message)) return auth(cause);
  const hint = CLUSTER_REPLY.test(cause.message) ? CLUSTER_HINT : '';
  return reply(`Redis answered with an error: ${withoutArguments(cause.message)}${hint}`, cause);
}

/** By the names of classes, because the clients' classes are not available here. */
function isKindOf(error, names) {
  if (typeof error !== 'object' || error === null) return false;
  if (names.includes(error.name)) return true;
  let prototype = Object.getPrototypeOf(error);
  while (prototype !== null) {
    if (names.includes(prototype.constructor?.name)) return true;
    prototype = Object.getPrototypeOf(prototype);
  }
  return false;
}

function isReplyError(error) {
  return isKindOf(error, ['ReplyError', 'ErrorReply']);
}

/**
 * The failure for anything that a client rejected with.
 *
 * @param {{ commandTimeout: number, maxQueue: number, isClosed: () => boolean,
 *   hint: () => string | undefined }} circumstances
 */
function fromClientError(error, { commandTimeout, maxQueue, isClosed, hint }) {
  if (isReplyError(error)) return fromReplyError(error);
  // A cluster client that finds no node reports the last node's error.
  if (isReplyError(error?.lastNodeError)) return fromReplyError(error.lastNodeError);
  if (isClosed()) return closed(error);
  const message = error?.message;
  if (isKindOf(error, ['TimeoutError']) || message === 'Command timed out') {
    return timeout(commandTimeout, error);
  }
  if (message === 'The queue is full') return queueFull(maxQueue, error);
  return unreachable(error, hint());
}

module.exports = {
  auth,
  closed,
  fromClientError,
  fromReplyError,
  isOutage,
  queueFull,
  reply,
  timeout,
  unreachable,
};
