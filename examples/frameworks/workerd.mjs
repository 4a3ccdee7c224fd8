// Limits a Worker, in workerd and on Cloudflare. In memory, each isolate counts by itself.
import { rateLimitFetch } from 'rollgate/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

export default {
  async fetch(request) {
    const ip = request.headers.get('cf-connecting-ip') ?? undefined;
    const { allowed, headers, response } = await limit(request, { ip });
    return allowed ? new Response('Welcome.\n', { headers }) : response;
  },
};
