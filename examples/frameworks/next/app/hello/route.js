// A route handler with a limit of its own.
import { rateLimitFetch } from 'rollgate/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 3, standardHeaders: 'draft-8' });

export async function GET(request) {
  const ip = request.headers.get('x-forwarded-for')?.split(',').at(-1).trim();
  const { allowed, headers, response } = await limit(request, { ip });
  if (!allowed) return response;
  return Response.json({ hello: 'world' }, { headers });
}
