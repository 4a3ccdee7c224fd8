// The same exports for import.
import RateLimiter from './browser.js';

export default RateLimiter;
export const { attemptAll } = RateLimiter;
export { RateLimiter };
