// What require('rollgate') gives to TypeScript: index.d.ts, with `rateLimit` and `concurrency` on the requests of Express.
//
// It is apart from index.d.ts for those who take rollgate/store alone: their `req.rateLimit` is the one of
// express-rate-limit, which has a type for it.

import RateLimiter = require('./index');

declare global {
  // The types of Express extend it. It inherits the property, so that a program may declare it more narrowly.
  namespace Express {
    interface Request extends RateLimiter.PerhapsRateLimit, RateLimiter.PerhapsConcurrency {}
  }
}

export = RateLimiter;
