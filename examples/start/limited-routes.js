// The limited routes of the start page: GET /action and GET /lenient, which differ in countBlocked only.
'use strict';

const { performance } = require('node:perf_hooks');
const express = require('express');
const RateLimiter = require('../..'); // in your application: require('rollgate')
const { createEventStream } = require('./event-stream');

const { rateLimit } = RateLimiter;

function limitedRoutes({ interval, maxInInterval }) {
  const routes = [
    { route: 'action', countBlocked: true },
    { route: 'lenient', countBlocked: false },
  ];
  const events = createEventStream({
    setup: { interval, maxInInterval, routes },
    keepMs: 2 * interval,
  });
  const router = express.Router();
  router.get('/events', events.subscribe);

  for (const { route, countBlocked } of routes) {
    const limiter = reporting(
      RateLimiter({ interval, maxInInterval, countBlocked }),
      route,
      events,
    );
    // In memory a limiter decides synchronously, so its newest event is the one of this request.
    const answer = (_req, res) => {
      const event = limiter.newestEvent();
      res.status(event.allowed ? 200 : 429).json(event);
    };
    router.get(`/${route}`, rateLimit({ limiter, standardHeaders: true, handler: answer }), answer);
  }
  return router;
}

/** The same limiter, with an event for every decision. The middleware needs only these methods. */
function reporting(limiter, route, events) {
  let newest;
  return {
    attempt(id) {
      const decision = limiter.attempt(id);
      newest = events.publish(id, { route, at: performance.now(), ...decision });
      return decision;
    },
    peek: (id) => limiter.peek(id),
    clear: (id) => limiter.clear(id),
    newestEvent: () => newest,
  };
}

module.exports = { limitedRoutes };
