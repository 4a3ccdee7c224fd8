// The middleware over HTTP, in what the argument names: express, http, fastify, or store (of
// express-rate-limit). Two requests pass, the third is refused.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { rateLimit } from 'rollgate';

const options = { windowMs: 60_000, limit: 2, standardHeaders: 'draft-8' };

async function expressWith(middleware) {
  const { default: express } = await import('express');
  const app = express();
  app.use(middleware);
  app.get('/', (_request, response) => response.send('welcome'));
  return http.createServer(app);
}

const servers = {
  express: () => expressWith(rateLimit(options)),

  http() {
    const middleware = rateLimit(options);
    return http.createServer((request, response) => {
      middleware(request, response, (error) => response.end(error ? 'failed' : 'welcome'));
    });
  },

  async fastify() {
    const { default: createFastify } = await import('fastify');
    const { default: rollgate } = await import('rollgate/fastify');
    const app = createFastify();
    await app.register(rollgate, options);
    app.get('/', () => 'welcome');
    await app.ready();
    return app.server;
  },

  async store() {
    const { default: expressRateLimit } = await import('express-rate-limit');
    const { RollgateStore } = await import('rollgate/store');
    return expressWith(expressRateLimit({ ...options, store: new RollgateStore() }));
  },
};

async function get(port) {
  const request = http.get({ host: '127.0.0.1', port, agent: false });
  const [response] = await once(request, 'response');
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

async function main() {
  const server = await servers[process.argv[2]]();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  const answers = [await get(port), await get(port), await get(port)];
  server.close();
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 429],
  );
  assert.equal(answers[0].body, 'welcome');
  assert.match(answers[0].headers.ratelimit, /^"2-in-1min"; r=1; t=\d+$/);
  const { headers } = answers[2];
  assert.match(headers.ratelimit, /^"2-in-1min"; r=0; t=\d+$/);
  assert.match(headers['ratelimit-policy'], /^"2-in-1min"; q=2; w=60; pk=:[\w+/=]+:$/);
  assert.ok(Number(headers['retry-after']) > 0 && Number(headers['retry-after']) <= 60);
}

await main();
console.log('result: works');
