// Limits a Fastify application. Run it: node examples/frameworks/fastify.js, then: curl -i http://127.0.0.1:3000/
'use strict';

const createFastify = require('fastify');
const rollgate = require('rollgate/fastify');

async function main() {
  const app = createFastify();

  await app.register(rollgate, { windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

  app.get('/', (request) => `Welcome. ${request.rateLimit.remaining} more in this minute.\n`);

  // A route may have limits of its own, or none.
  app.get('/dear', { config: { rateLimit: { limit: 2 } } }, () => 'Not too often, please.\n');
  app.get('/health', { config: { rateLimit: false } }, () => 'ok\n');

  const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' });
  console.log(`${address}/`);
}

main();
