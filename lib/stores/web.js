// The stores besides memory where there are no modules of Node: key-value stores.
'use strict';

const { failure } = require('../base/errors');

const clientKindOf = () => undefined;

function missing(option, alternative) {
  const refuse = () => {
    throw failure(
      'ERR_ROLLGATE_UNSUPPORTED',
      `option '${option}': not possible on this host, which has no modules of Node; ${alternative}`,
    );
  };
  return { readOptions: refuse, create: refuse, pathOf: refuse, partOf: refuse };
}

module.exports = {
  redis: { ...missing('redis', "take 'kv', with a store of this host"), clientKindOf },
  shared: missing('shared', "take 'kv', or a limiter in memory"),
  kv: {
    readOptions: (options) => require('./kv/options').readKvOptions(options, clientKindOf),
    create: (checked) => require('./kv/store').createKvStore(checked),
  },
};
