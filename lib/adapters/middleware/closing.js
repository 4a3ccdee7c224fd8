// When a response ends, on HTTP/1 and HTTP/2, for any number of limiters.
'use strict';

/** The property of a response that wraps a ServerResponse: that ServerResponse, which has the events. */
const RAW_RESPONSE = Symbol('raw response');

const rawOf = (res) => res[RAW_RESPONSE] ?? res;

/** For each emitter the listeners of all limiters, by event. */
const listenersOf = new WeakMap();

/** As `once` of the emitter, but as one listener for any number of limiters: Node warns of more than ten. */
function onceAt(event, emitter, listener) {
  const byEvent = listenersOf.get(emitter) ?? new Map();
  listenersOf.set(emitter, byEvent);
  const listeners = byEvent.get(event) ?? [];
  listeners.push(listener);
  if (listeners.length > 1) return;
  byEvent.set(event, listeners);
  emitter.once(event, () => {
    byEvent.delete(event);
    for (const call of listeners) call();
  });
}

/** Whether no event will say that the response closes. */
function isClosed(raw) {
  const { stream, signal } = raw; // the signal is that of rollgate/fetch
  if (raw.destroyed || raw.closed || stream?.destroyed || stream?.closed || signal?.aborted)
    return true;
  return queuedAt(raw)?.destroyed;
}

/** The connection of a response of HTTP/1 that is behind others of its connection: none of its events come if that closes. */
function queuedAt(raw) {
  return raw.socket === null ? raw.req?.socket : undefined;
}

/** By connection: the listeners of responses that are queued at it. */
const queued = new WeakMap();

function whenQueueEnds(raw, listener) {
  const socket = queuedAt(raw);
  if (socket?.once === undefined) return;
  const listeners = queued.get(socket) ?? new Set();
  if (!queued.has(socket)) {
    queued.set(socket, listeners);
    socket.once('close', () => {
      for (const call of listeners) call();
    });
  }
  listeners.add(listener);
  onceAt('close', raw, () => listeners.delete(listener));
}

/** The listener may be called several times. The response must not be closed yet. */
function whenClosed(raw, listener) {
  onceAt('close', raw, listener);
  onceAt('finish', raw, listener); // alone, where the response is not that of a server
  whenQueueEnds(raw, listener);
  const { stream } = raw;
  if (stream?.once === undefined) return;
  // Node 20 to 24: a client that resets its stream of HTTP/2 without an error, after the response has ended and before it
  // is sent, leaves a stream that is closed and never destroyed: there is no 'close' and no 'finish'.
  onceAt('end', stream, () => stream.closed && listener());
  onceAt('aborted', stream, listener);
}

module.exports = { RAW_RESPONSE, isClosed, onceAt, rawOf, whenClosed };
