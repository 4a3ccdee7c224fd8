// The entry for Vercel's Edge Runtime.
import './native/edge-light.mjs';
import RateLimiter from './web.js';

export default RateLimiter;
export const { attemptAll, ConcurrencyLimiter } = RateLimiter;
export { RateLimiter };
