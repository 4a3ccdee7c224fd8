// The WebAssembly module for Cloudflare's workerd, which compiles only files of the deployed Worker.
import module from '../wasm/rollgate.wasm';

export default module;
