// Two attempts in the Edge Runtime, where rollgate runs as WebAssembly.
import RateLimiter from 'rollgate';

export const runtime = 'edge';

const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });

export function GET() {
  return Response.json({ edge: [limiter('ada'), limiter('ada')] });
}
