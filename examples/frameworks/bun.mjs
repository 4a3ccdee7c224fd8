// Limits a server of Bun. Run it: bun examples/frameworks/bun.mjs, then: curl -i http://127.0.0.1:3000/
import { rateLimitFetch } from 'rollgate/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 3000),
  async fetch(request, server) {
    const ip = server.requestIP(request)?.address;
    const { allowed, headers, response } = await limit(request, { ip });
    return allowed ? new Response('Welcome.\n', { headers }) : response;
  },
});

console.log(`http://127.0.0.1:${server.port}/`);
