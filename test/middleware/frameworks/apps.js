// The frameworks that the middleware is for: each serves the same routes, for real, on a port of its own.
'use strict';

require('reflect-metadata');
const { once } = require('node:events');
const http = require('node:http');
const { Catch, Controller, Get, Module, Req, Res } = require('@nestjs/common');
const { NestFactory } = require('@nestjs/core');
const connect = require('connect');
const express5 = require('express');
const express4 = require('express-4');
const polka = require('polka');

/** What every application does: tells what the middleware told it, fails, or never answers. */
function routesOf(arrivals) {
  return {
    '/': (req, res) => sendJson(res, 200, { seen: req.rateLimit }),
    '/missing': (_req, res) => sendJson(res, 404, {}),
    '/never': (req, res) => arrivals.emit('arrived', req, res),
  };
}

/** The application's own error handling, as each framework names it. */
function answerError(error, res) {
  sendJson(res, 503, { handled: error.message });
}

function sendJson(res, status, body) {
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(body));
}

function startExpress(express) {
  return async (middleware, routes) => {
    const app = express();
    app.use(middleware);
    for (const [path, answer] of Object.entries(routes)) app.get(path, answer);
    // Express tells an error handler by its four parameters.
    app.use((error, _req, res, _next) => answerError(error, res));
    return http.createServer(app);
  };
}

async function startConnect(middleware, routes) {
  const app = connect();
  app.use(middleware);
  // Connect's paths are prefixes.
  app.use((req, res, next) => (routes[req.url] ? routes[req.url](req, res) : next()));
  app.use((error, _req, res, _next) => answerError(error, res));
  return http.createServer(app);
}

async function startPolka(middleware, routes) {
  const app = polka({ onError: (error, _req, res) => answerError(error, res) });
  app.use(middleware);
  for (const [path, answer] of Object.entries(routes)) app.get(path, answer);
  return http.createServer(app.handler);
}

/** Plain JavaScript: decorators are functions, called by hand. */
function startNest(use) {
  return async (middleware, routes) => {
    class Routes {}
    for (const [path, answer] of Object.entries(routes)) {
      Routes.prototype[path] = answer;
      Req()(Routes.prototype, path, 0);
      Res()(Routes.prototype, path, 1);
      const property = Object.getOwnPropertyDescriptor(Routes.prototype, path);
      Get(path)(Routes.prototype, path, property);
    }
    Controller()(Routes);

    class Filter {
      catch(error, host) {
        answerError(error, host.switchToHttp().getResponse());
      }
    }
    Catch()(Filter);

    class App {
      configure(consumer) {
        use.consumer?.(consumer, middleware, Routes);
      }
    }
    Module({ controllers: [Routes] })(App);

    const app = await NestFactory.create(App, { logger: false });
    use.app?.(app, middleware);
    app.useGlobalFilters(new Filter());
    await app.init();
    return app.getHttpServer();
  };
}

const FRAMEWORKS = {
  'Express 4': startExpress(express4),
  'Express 5': startExpress(express5),
  Connect: startConnect,
  Polka: startPolka,
  'NestJS with app.use': startNest({ app: (app, middleware) => app.use(middleware) }),
  'NestJS with a consumer': startNest({
    consumer: (consumer, middleware, routes) => consumer.apply(middleware).forRoutes(routes),
  }),
};

/** Serves the routes behind the middleware on loopback; `close` ends it, connections included. */
async function serve(framework, middleware, arrivals) {
  const server = await FRAMEWORKS[framework](middleware, routesOf(arrivals));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

module.exports = { FRAMEWORKS, serve };
