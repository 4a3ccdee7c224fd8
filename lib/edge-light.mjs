// The entry for Vercel's Edge Runtime, which compiles only WebAssembly that an ES module imports.
import host from '#host';
import module from './wasm/rollgate.wasm?module';
import RateLimiter from './web.js';

host.useModule(module);

export default RateLimiter;
export const { attemptAll } = RateLimiter;
export { RateLimiter };
