// The stores besides memory that a limiter can have on Node, Bun and Deno. package.json maps `#stores` to this file or,
// where there are no modules of Node, to web.js. Each is loaded when a limiter uses it.
'use strict';

/** What a client of Redis is: see redis/clients. */
const clientKindOf = (client) => require('./redis/clients').clientKindOf(client);

module.exports = {
  redis: {
    clientKindOf,
    readOptions: (options) => require('./redis/options').readRedisOptions(options),
    create: (checked) => require('./redis/store').createRedisStore(checked),
    createSlots: (...args) => require('./redis/store').createRedisSlots(...args),
  },
  shared: {
    /** The file of the region of the option `shared`. */
    pathOf: (shared) => require('./shared/region').regionPath(shared),
    /** The option `shared` for a part of it. */
    partOf: (shared, part) => require('./shared/region').partOfRegion(shared, part),
    readOptions: (options) => require('./shared/region').readSharedOptions(options),
    create: (checked) => new (require('./shared/store').SharedStore)(checked),
    /** Of a concurrency limiter: see LocalSlots. */
    createCounts: (checked) => new (require('./shared/counts').SharedCounts)(checked),
  },
  kv: {
    readOptions: (options) => require('./kv/options').readKvOptions(options, clientKindOf),
    create: (checked) => require('./kv/store').createKvStore(checked),
  },
};
