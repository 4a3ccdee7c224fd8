// The same exports for import.
import RateLimiter from './index.js';

export default RateLimiter;
export const {
  InMemoryRateLimiter,
  IORedisRateLimiter,
  NodeRedisRateLimiter,
  RedisRateLimiter,
  attemptAll,
  createRedisConnection,
  rateLimit,
  ipKeyGenerator,
  unlinkShared,
  addonPath,
  setAddonPath,
} = RateLimiter;
export { RateLimiter };
