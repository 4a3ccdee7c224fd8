// The middleware for what runs at once: a request holds a slot until its response has closed.
'use strict';

const ConcurrencyLimiter = require('../../concurrency');
const { inAdapter, typeError } = require('../../base/errors');
const { ClientGone } = require('../middleware/client');
const { isClosed, rawOf, whenClosed } = require('../middleware/closing');
const { andThen, orElse } = require('../middleware/maybe-async');
const { setViolated } = require('../middleware/refusal');
const { createMiddleware } = require('../middleware/request');
const { createLogger, readKeyGenerator } = require('../middleware/warnings');
const { createPolicyHeader } = require('./headers');
const { readMaxOf, readOptions } = require('./options');

const IS_NOT_MIDDLEWARE =
  'concurrencyLimit is not a middleware: it returns one, as in app.use(concurrencyLimit({ max: 10 }))';

/** `app.use(concurrencyLimit({ max: 10 }))`: concurrency.d.ts documents the options; invalid ones throw here. */
function concurrencyLimit(options, ...more) {
  if (more.length > 0) throw typeError('ERR_ROLLGATE_OPTION', IS_NOT_MIDDLEWARE);
  return inAdapter('concurrencyLimit', () => createConcurrencyLimit(options));
}

function createConcurrencyLimit(options) {
  const given = readOptions(options);
  const logger = createLogger(given.logger);
  const settings = Object.freeze({ ...given, keyGenerator: readKeyGenerator(given, logger) });
  const limiter = settings.limiter ?? new ConcurrencyLimiter(settings.limiterOptions);
  const counter = createCounter(limiter, settings);
  return Object.assign(createMiddleware(settings, { counter, logger }), { limiter });
}

/** Errors of wait() that are a refusal. */
const REFUSALS = ['ERR_ROLLGATE_WAIT_DEADLINE', 'ERR_ROLLGATE_WAIT_QUEUE'];

/** `count` for createMiddleware. */
function createCounter(limiter, settings) {
  const { keyGenerator, max, maxWait, maxQueue, requestPropertyName } = settings;
  const setPolicy = createPolicyHeader(settings);
  /** By response: the ids that it holds a slot of. A middleware may be mounted twice. */
  const idsHeld = new WeakMap();

  function askMax(id, request) {
    request.id = id;
    const given = typeof max === 'function' ? max(request.req, request.res) : max;
    return andThen(given, askLimiter, request);
  }

  function askLimiter(given, request) {
    const most = typeof max === 'function' ? readMaxOf(given) : given;
    if (most === Number.POSITIVE_INFINITY) return true;
    const raw = rawOf(request.res);
    if (isClosed(raw)) throw new ClientGone(true);
    if (idsHeld.get(raw)?.has(request.id)) return true;
    if (maxWait > 0 && most !== 0) return wait(most, request);
    return andThen(limiter.acquire(request.id, { max: most }), publish, request);
  }

  async function wait(most, request) {
    const left = new AbortController();
    whenGone(rawOf(request.res), () => left.abort());
    const options = { max: most, deadline: maxWait, maxQueue, signal: left.signal };
    try {
      return publish(await limiter.wait(request.id, options), request);
    } catch (error) {
      if (left.signal.aborted) throw new ClientGone(true);
      if (!REFUSALS.includes(error?.code)) throw error;
      return publish(await limiter.acquire(request.id, { max: most }), request);
    }
  }

  /** `slot` may be a refusal. Returns whether the request passes. */
  function publish(slot, request) {
    if (slot.allowed) hold(slot, request);
    request.req[requestPropertyName] = slot;
    const named = (name) => {
      if (!slot.allowed && name !== undefined) setViolated(slot, [name]);
      return slot.allowed;
    };
    return orElse(
      () => andThen(setPolicy(request, slot), named),
      (error) => {
        if (slot.allowed) slot.release();
        throw error;
      },
    );
  }

  function hold(slot, request) {
    const raw = rawOf(request.res);
    if (isClosed(raw)) {
      slot.release();
      throw new ClientGone(true);
    }
    idsHeld.set(raw, (idsHeld.get(raw) ?? new Set()).add(request.id));
    if (raw.once !== undefined) whenClosed(raw, () => slot.release()); // else the caller does it
  }

  const count = (request) => andThen(keyGenerator(request.req, request.res), askMax, request);
  return { count };
}

/** The response of rollgate/fetch has no events. */
function whenGone(raw, leave) {
  if (raw.once !== undefined) whenClosed(raw, leave);
  else raw.signal?.addEventListener('abort', leave, { once: true });
}

module.exports = concurrencyLimit;
