// A route handler that proxy.js limits.
export const dynamic = 'force-dynamic';

export function GET() {
  return Response.json({ time: new Date().toISOString() });
}
