// Limits for servers that speak Request and Response: the middleware over adapters of these two.
'use strict';

const errors = require('../base/errors');
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

  /** `end(response)` gets the response of a refusal. */
  constructor(end) {
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

/** The property of req for what was decided. */
const PROPERTY = 'rateLimit';

/** The response of the user's function `name`, perhaps of another realm. Without one, a refused request would pass. */
function assertIsResponse(name, response) {
  const isResponse =
    typeof response?.status === 'number' && typeof response.headers?.get === 'function';
  if (isResponse) return response;
  throw optionTypeError(name, 'the function to give a Response', response);
}

/** The user's functions get (request, info), where `info` is the second argument of the call. */
function adaptOptions(options) {
  const withInfo = (own) => wrap(own, (req, _res, ...more) => own(req.request, req.info, ...more));
  const answer = (name, given, res) =>
    andThen(given, (response) => res.endWith(assertIsResponse(name, response)));
  return adaptFunctions(options, {
    ofRequest: withInfo,
    authenticate: withInfo,
    handler: (own) =>
      wrap(own, (req, res) => {
        const decision = RequestInfo.decisionOf(req[PROPERTY]);
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
function assertIsCall(request, info) {
  if (typeof request?.headers?.get !== 'function') throw callError('a Request', request);
  if (typeof info !== 'object' || info === null) throw callError('an object such as { ip }', info);
}

function callError(expected, given) {
  const message = `rateLimitFetch: expected ${expected}, got ${show(given)}`;
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

/** `await rateLimitFetch({ limit: 100 })(request, { ip })` is { allowed, headers, response, ... }: see fetch.d.ts. */
function rateLimitFetch(options) {
  const middleware = inAdapter('rateLimitFetch', () => {
    assertFits(options);
    return rateLimit(adaptOptions(options));
  });

  function limit(request, info = {}) {
    return new Promise((resolve, reject) => {
      assertIsCall(request, info);
      const req = new FetchRequest(request, info);
      const res = new FetchResponse((response) => resolve(resultOf(req, res, response)));
      const next = (error) => (error === undefined ? resolve(resultOf(req, res)) : reject(error));
      andThen(middleware(req, res, next), () => {});
    });
  }

  return Object.assign(limit, { resetKey: middleware.resetKey, getKey: middleware.getKey });
}

/** `response` is that of a refusal. */
function resultOf(req, { headers }, response) {
  const info = req[PROPERTY];
  return {
    allowed: response === undefined,
    decision: info === undefined ? null : RequestInfo.decisionOf(info),
    headers,
    response,
    shadow: info?.shadow,
    settle: (actual) => (info === undefined ? false : info.settle(actual)),
  };
}

module.exports = { rateLimitFetch };
