// Limits for servers that speak Request and Response: the middleware over adapters of these two.
'use strict';

const errors = require('../base/errors');
const { reasonOf } = require('../base/timers');
const concurrencyLimit = require('./concurrency');
const rateLimit = require('./middleware');
const { adaptFunctions } = require('./middleware/adapt');
const { andThen } = require('./middleware/maybe-async');
const { RequestInfo } = require('./middleware/request-info');
const { wrap } = require('./middleware/warnings');

const { inAdapter, optionError, optionRangeError, optionTypeError, show, typeError } = errors;

/** What the middleware reads of a request. */
class FetchRequest {
  constructor(request, info) {
    this.request = request;
    this.info = info;
    this.method = request.method;
    const { pathname, search } = new URL(request.url);
    this.url = pathname + search;
    this.socket = { remoteAddress: info.ip, destroyed: false };
  }

  get headers() {
    const header = (name) => this.request.headers.get(name) ?? undefined;
    return { 'x-forwarded-for': header('x-forwarded-for'), forwarded: header('forwarded') };
  }
}

/** What the middleware does with a response: it sets headers, and may end it. */
class FetchResponse {
  statusCode = 200;
  headersSent = false;
  writableEnded = false;
  headers = new Headers();
  #end;

  /** `signal` aborts if the client leaves; `end(response)` gets the response of a refusal. */
  constructor(signal, end) {
    this.signal = signal;
    this.#end = end;
  }

  getHeader(name) {
    return this.headers.get(name) ?? undefined;
  }

  hasHeader(name) {
    return this.headers.has(name);
  }

  setHeader(name, value) {
    this.headers.set(name, [value].flat().join(', '));
  }

  end(body) {
    this.writableEnded = true;
    const { statusCode: status, headers } = this;
    const response = new Response(body, { status, headers: new Headers(headers) });
    for (const ofBody of ['Content-Type', 'Content-Length']) headers.delete(ofBody);
    this.#end(response);
  }

  /** A user's own response. */
  endWith(response) {
    this.writableEnded = true;
    this.#end(response);
  }
}

/** Options about responses, which are not seen here. */
const OF_RESPONSES = ['skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful'];

/** The response of the user's function `name`, perhaps of another realm. Without one, a refused request would pass. */
function assertIsResponse(name, response) {
  const isResponse =
    typeof response?.status === 'number' && typeof response.headers?.get === 'function';
  if (isResponse) return response;
  throw optionTypeError(name, 'the function to give a Response', response);
}

/** The user's functions get (request, info), where `info` is the second argument of the call; handler also decisionOf(req). */
function adaptOptions(options, decisionOf) {
  const withInfo = (own) => wrap(own, (req, _res, ...more) => own(req.request, req.info, ...more));
  const answer = (name, given, res) =>
    andThen(given, (response) => res.endWith(assertIsResponse(name, response)));
  return adaptFunctions(options, {
    ofRequest: withInfo,
    authenticate: withInfo,
    handler: (own) =>
      wrap(own, (req, res) => {
        const decision = decisionOf(req);
        const headers = new Headers(res.headers);
        return answer('handler', own(req.request, req.info, decision, headers), res);
      }),
    onAuthError: (own) =>
      wrap(own, (error, req, res) => {
        return answer('onAuthError', own(error, req.request, req.info), res);
      }),
  });
}

/** @throws TypeError ERR_ROLLGATE_OPTION */
function assertIsCall(name, request, info) {
  if (typeof request?.headers?.get !== 'function') throw callError(name, 'a Request', request);
  if (typeof info !== 'object' || info === null) {
    throw callError(name, 'an object such as { ip }', info);
  }
}

function callError(name, expected, given) {
  const message = `${name}: expected ${expected}, got ${show(given)}`;
  return typeError('ERR_ROLLGATE_OPTION', message);
}

/** A refusal has a body. */
const WITHOUT_BODY = [204, 205, 304];
const LARGEST_STATUS = 599;

/** @throws TypeError or RangeError ERR_ROLLGATE_OPTION */
function assertFits(options) {
  const other = OF_RESPONSES.find((name) => options?.[name] !== undefined);
  const why = "not possible without a server's response; call settle(0) of the result";
  if (other !== undefined) throw optionError(other, why);
  if (options?.requestPropertyName !== undefined) {
    throw optionError('requestPropertyName', 'not possible here: requests stay as they are');
  }
  const { statusCode } = options ?? {};
  if (statusCode > LARGEST_STATUS || WITHOUT_BODY.includes(statusCode)) {
    const expected = `an integer from 200 to ${LARGEST_STATUS}, not ${WITHOUT_BODY.join(', ')}`;
    throw optionRangeError('statusCode', expected, statusCode);
  }
}

/** A function (request, info) over a middleware; `resultOf(req, res, response)` is its result. */
function overMiddleware(name, options, { create, decisionOf, resultOf }) {
  const middleware = inAdapter(name, () => {
    assertFits(options);
    return create(adaptOptions(options, decisionOf));
  });

  function limit(request, info = {}) {
    return new Promise((resolve, reject) => {
      assertIsCall(name, request, info);
      const req = new FetchRequest(request, info);
      const end = (response) => resolve(resultOf(req, res, response));
      const res = new FetchResponse(request.signal, end);
      const next = (error) => (error === undefined ? resolve(resultOf(req, res)) : reject(error));
      // A request that has left gets neither.
      andThen(middleware(req, res, next), () => {
        if (request.signal?.aborted) reject(reasonOf(request.signal));
      });
    });
  }
  return { limit, middleware };
}

/** `await rateLimitFetch({ limit: 100 })(request, { ip })` is { allowed, headers, response, ... }: see fetch.d.ts. */
function rateLimitFetch(options) {
  const { limit, middleware } = overMiddleware('rateLimitFetch', options, {
    create: rateLimit,
    decisionOf: (req) => RequestInfo.decisionOf(req.rateLimit),
    resultOf,
  });
  return Object.assign(limit, { resetKey: middleware.resetKey, getKey: middleware.getKey });
}

/** `response` is that of a refusal. */
function resultOf(req, { headers }, response) {
  const info = req.rateLimit;
  return {
    allowed: response === undefined,
    decision: info === undefined ? null : RequestInfo.decisionOf(info),
    headers,
    response,
    shadow: info?.shadow,
    settle: (actual) => (info === undefined ? false : info.settle(actual)),
  };
}

/** The same for what runs at once; `release` of the result must be called when the response has been sent. */
function concurrencyLimitFetch(options) {
  const { limit, middleware } = overMiddleware('concurrencyLimitFetch', options, {
    create: concurrencyLimit,
    decisionOf: ({ concurrency }) => concurrency,
    resultOf: slotResultOf,
  });
  return Object.assign(limit, { limiter: middleware.limiter });
}

function slotResultOf({ concurrency: slot = null }, { headers }, response) {
  return {
    allowed: response === undefined,
    slot,
    headers,
    response,
    release: () => (slot?.allowed ? slot.release() : false),
  };
}

module.exports = { concurrencyLimitFetch, rateLimitFetch };
