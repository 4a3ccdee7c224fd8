// The entry for Cloudflare's workerd, which compiles WebAssembly only from files of the deployed Worker.
import host from '#host';
import module from './wasm/rollgate.wasm';
import RateLimiter from './web.js';

host.useModule(() => module);

export default RateLimiter;
export const { attemptAll } = RateLimiter;
export { RateLimiter };
