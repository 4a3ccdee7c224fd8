// The same exports for import.
import RateLimiter from './web.js';

export default RateLimiter;
export const { attemptAll } = RateLimiter;
export { RateLimiter };
