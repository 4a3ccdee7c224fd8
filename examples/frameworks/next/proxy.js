// Limits all paths below /api. Before Next 16, the file is middleware.js and the function `middleware`.
import { NextResponse } from 'next/server';
import { rateLimitFetch } from 'rollgate/fetch';

const limit = rateLimitFetch({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

export const config = { matcher: '/api/:path*' };

export async function proxy(request) {
  const ip = request.headers.get('x-forwarded-for')?.split(',').at(-1).trim();
  const { allowed, headers, response } = await limit(request, { ip });
  return allowed ? NextResponse.next({ headers }) : response;
}
