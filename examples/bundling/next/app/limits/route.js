import decisions from '../../../decisions';

export const dynamic = 'force-dynamic';

export async function GET() {
  return Response.json(await decisions());
}
