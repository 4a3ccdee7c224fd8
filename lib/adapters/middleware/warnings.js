// What a middleware warns of: signs of a wrong set-up, which the option validate turns off, and failures.
'use strict';

const platform = require('#platform');
const { homepage } = require('../../../package.json');
const { outermostAdapter } = require('../../base/errors');
const { readBoolean, readObject, rejectUnknownOptions } = require('../../options/values');
const { assertIsThere, createClientKey, isUsualSubnet } = require('./client');
const { andThen, orElse } = require('./maybe-async');

/** A URL, if the package has one. */
const ERRORS_PAGE = `${homepage ?? 'rollgate'}/docs/errors.md`;

/** The checks, named as in express-rate-limit. */
const CHECKS = [
  'creationStack',
  'forwardedHeader',
  'ip',
  'ipv6Subnet',
  'keyGeneratorIpFallback',
  'singleCount',
  'trustProxy',
  'undefinedKey',
  'unsharedStore',
  'xForwardedForHeader',
];

/** Checks of express-rate-limit on what throws or cannot go wrong here: accepted, without effect. */
const CHECKS_WITHOUT_EFFECT = [
  'draftPolliHeaders',
  'headersDraftVersion',
  'headersResetTime',
  'ipv6SubnetOrKeyGenerator',
  'knownOptions',
  'limit',
  'onLimitReached',
  'positiveHits',
  'validationsConfig',
  'windowMs',
];

/**
 * The option validate.
 *
 * @returns {Record<string, boolean>} for each check whether to make it; those not given have `default`
 */
function readValidate(name, value) {
  if (typeof value === 'boolean') return checksBy({ default: value });
  readObject(name, value, 'true, false or an object of checks');
  const names = [...CHECKS, ...CHECKS_WITHOUT_EFFECT, 'default'];
  rejectUnknownOptions(value, names, { place: name });
  for (const [check, isOn] of Object.entries(value)) readBoolean(`${name}.${check}`, isOn);
  return checksBy(value);
}

function checksBy(given) {
  const byDefault = given.default ?? true;
  return Object.freeze(Object.fromEntries(CHECKS.map((name) => [name, given[name] ?? byDefault])));
}

/** How the routers of Express 4 and Express 5 appear in a stack. */
const HANDLER_FRAME = /\bLayer\.handle(?:Request\b| \[as handle_request\])/;

const IP_OF_REQUEST = /\breq(?:uest)?\.ip\b/;

/** Checks made when a middleware is created: where that happens, and the source of its keyGenerator. */
function checkSetUp({ validate, limiter, keyGenerator, ipv6Subnet }, logger) {
  // A middleware over an existing limiter counts in that limiter, so it may be created anywhere.
  if (validate.creationStack && limiter === undefined && isInHandler()) {
    logger.warn(
      'ROLLGATE_CREATED_IN_HANDLER',
      'a middleware was created while a request was handled: its count begins at zero each time.',
    );
  }
  if (validate.keyGeneratorIpFallback && usesBareIp(keyGenerator)) {
    logger.warn(
      'ROLLGATE_BARE_IP_KEY',
      'keyGenerator seems to use req.ip without ipKeyGenerator: clients with IPv6 can change theirs at will.',
    );
  }
  if (validate.ipv6Subnet && !isUsualSubnet(ipv6Subnet)) {
    logger.warn(
      'ROLLGATE_IPV6_SUBNET',
      `ipv6Subnet is ${ipv6Subnet}: below 32, whole providers share one limit, and above 64 clients choose addresses at will.`,
    );
  }
}

function isInHandler() {
  return HANDLER_FRAME.test(new Error().stack ?? '');
}

function usesBareIp(keyGenerator) {
  if (keyGenerator === undefined) return false;
  const source = Function.prototype.toString.call(unwrap(keyGenerator));
  return IP_OF_REQUEST.test(source) && !source.includes('ipKeyGenerator');
}

/**
 * The user's keyGenerator, which may take the default one as its third argument, with a warning for the first
 * undefined key, or null: all such requests share one count, but for those whose client has left.
 */
function checkKeys({ validate, keyGenerator }, clientKey, logger) {
  const ask = takesClientKey(keyGenerator)
    ? (req, res) => keyGenerator(req, res, () => clientKey(req, res))
    : keyGenerator;
  const check = (key, req) => {
    if (key !== undefined && key !== null) return key;
    assertIsThere(req);
    if (validate.undefinedKey) {
      const what = `keyGenerator gave ${key}: all requests without a key share one limit.`;
      logger.warn('ROLLGATE_UNDEFINED_KEY', what);
    }
    return key;
  };
  return wrap(unwrap(keyGenerator), (req, res) => {
    return andThen(ask(req, res), (key) => check(key, req));
  });
}

/** The keyGenerator of a middleware with these options, after the checks of its set-up. */
function readKeyGenerator(given, logger) {
  checkSetUp(given, logger);
  const clientKey = createClientKey(given, logger);
  return given.keyGenerator === undefined ? clientKey : checkKeys(given, clientKey, logger);
}

/** Whether a user's keyGenerator has a third parameter. */
function takesClientKey(keyGenerator) {
  return unwrap(keyGenerator).length > 2;
}

/** Maps a wrapper to the user function it wraps. */
const wrapped = new WeakMap();

/** Returns `wrapper`, remembered as a wrapper of the user function `fn`. */
function wrap(fn, wrapper) {
  wrapped.set(wrapper, fn);
  return wrapper;
}

/** The user function that `fn` wraps, or `fn` itself. */
function unwrap(fn) {
  return wrapped.get(fn) ?? fn;
}

/**
 * Reports to the user's logger, or else as warnings of the process. `warn` reports each code once. `error`
 * gives a logger every error; as process warnings each code appears once, so that an outage of the store does
 * not fill the log. If the logger itself fails, the process warns instead: that must not fail a request, and
 * nobody would catch an error thrown after the response.
 */
function createLogger(own) {
  const adapter = outermostAdapter();
  const warned = new Set();
  const emitted = new Set();

  /** `log(message)` gives it to the user's logger. */
  function report(code, what, error, log) {
    const message = `${adapter}: ${what} See ${ERRORS_PAGE}#${code.toLowerCase()}`;
    const emit = () => {
      if (!addNew(emitted, code)) return;
      const detail = error === undefined ? undefined : platform.inspect(error);
      platform.warn(message, code, detail);
    };
    if (own === undefined) emit();
    else orElse(() => log(message), emit);
  }

  return {
    warn(code, what) {
      if (!addNew(warned, code)) return;
      report(code, what, undefined, (message) =>
        own.warn(Object.assign(new Error(message), { name: 'RollgateWarning', code })),
      );
    },

    error(code, what, error) {
      report(code, what, error, (message) => own.error(error, message));
    },
  };
}

/** Whether the value was not in the set. */
function addNew(set, value) {
  if (set.has(value)) return false;
  set.add(value);
  return true;
}

module.exports = {
  createLogger,
  readKeyGenerator,
  readValidate,
  takesClientKey,
  unwrap,
  wrap,
};
