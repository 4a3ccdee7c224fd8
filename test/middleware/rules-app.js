// An app behind rules, asked as anybody in any group, with a clock moved by hand.
'use strict';

const express = require('express');
const request = require('supertest');
const { rateLimit } = require('../..');

/** A clock moved by hand, and an app that answers every method and path behind rules with it. */
function setUp(rules, options) {
  const hand = { now: 1_000_000 };
  const settings = { clock: () => hand.now, authenticate: byHeaders, rules, ...options };
  if ('keyGenerator' in settings) delete settings.authenticate;
  const middleware = rateLimit(settings);
  const app = express();
  app.use(middleware);
  app.use((req, res) => res.json(req.rateLimit ?? null));
  app.use((error, _req, res, _next) => {
    res.status(500).json({ code: error.code, message: error.message });
  });
  const ask = (path, { id = 'ada', group, method = 'get' } = {}) => {
    const asked = request(app)[method](path).set('x-id', id);
    return group === undefined ? asked : asked.set('x-group', group);
  };
  const statuses = async (...paths) => {
    const found = [];
    for (const path of paths) found.push((await ask(...[].concat(path))).status);
    return found;
  };
  return { app, middleware, hand, ask, statuses };
}

function byHeaders(req) {
  return { id: req.headers['x-id'], group: req.headers['x-group'] };
}

module.exports = { byHeaders, setUp };
