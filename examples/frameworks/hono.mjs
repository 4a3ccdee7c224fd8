// Limits a Hono application on Node. Run it: node examples/frameworks/hono.mjs, then: curl -i http://127.0.0.1:3000/
import { serve } from '@hono/node-server';
import { getConnInfo } from '@hono/node-server/conninfo';
import { Hono } from 'hono';
import { rateLimitFetch } from 'rollgate/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

const app = new Hono();

app.use(async (c, next) => {
  const ip = getConnInfo(c).remote.address;
  const { allowed, headers, response } = await limit(c.req.raw, { ip });
  if (!allowed) return response;
  for (const [name, value] of headers) c.header(name, value);
  await next();
});

app.get('/', (c) => c.text('Welcome.\n'));

const port = Number(process.env.PORT ?? 3000);
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}/`);
});
