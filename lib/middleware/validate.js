// The option validate: which of the checks on how a middleware is used are made.
'use strict';

const { optionTypeError, show, typeError } = require('../errors');
const { hintAt } = require('../nearest-name');

/** The checks, under their names in express-rate-limit. */
const CHECKS = [
  'creationStack',
  'forwardedHeader',
  'ip',
  'keyGeneratorIpFallback',
  'singleCount',
  'trustProxy',
  'xForwardedForHeader',
];

/** Checks of express-rate-limit of what is refused here at once, or cannot go wrong: accepted, without effect. */
const NEEDLESS = [
  'draftPolliHeaders',
  'headersDraftVersion',
  'headersResetTime',
  'ipv6Subnet',
  'ipv6SubnetOrKeyGenerator',
  'knownOptions',
  'limit',
  'onLimitReached',
  'positiveHits',
  'unsharedStore',
  'validationsConfig',
  'windowMs',
];

/** @returns {Record<string, boolean>} for each check whether to make it; those left out go by `default` */
function readValidate(value) {
  if (typeof value === 'boolean') return checksBy({ default: value });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw optionTypeError('validate', 'true, false or an object of checks', value);
  }
  const names = [...CHECKS, ...NEEDLESS, 'default'];
  for (const [name, isOn] of Object.entries(value)) {
    if (!names.includes(name)) {
      throw typeError(
        'ERR_ROLLGATE_OPTION',
        `unknown check ${show(name)} in validate: expected one of ${names.join(', ')}${hintAt(name, names)}`,
      );
    }
    if (isOn !== undefined && typeof isOn !== 'boolean') {
      throw optionTypeError(`validate.${name}`, 'true or false', isOn);
    }
  }
  return checksBy(value);
}

function checksBy(given) {
  const byDefault = given.default ?? true;
  return Object.freeze(Object.fromEntries(CHECKS.map((name) => [name, given[name] ?? byDefault])));
}

module.exports = { readValidate };
