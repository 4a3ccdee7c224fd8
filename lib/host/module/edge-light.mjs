// The WebAssembly module for Vercel's Edge Runtime, which compiles only files of the deployed function.
import module from '../../wasm/rollgate.wasm?module';

export default module;
