// Limits a server of Deno. Run it: deno run --allow-all examples/frameworks/deno.mjs, then: curl -i http://127.0.0.1:3000/
import { rateLimitFetch } from 'rollgate/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

Deno.serve(
  {
    hostname: '127.0.0.1',
    port: Number(Deno.env.get('PORT') ?? 3000),
    onListen: ({ port }) => console.log(`http://127.0.0.1:${port}/`),
  },
  async (request, { remoteAddr }) => {
    const { allowed, headers, response } = await limit(request, { ip: remoteAddr.hostname });
    return allowed ? new Response('Welcome.\n', { headers }) : response;
  },
);
