// Gives the WebAssembly module to Vercel's Edge Runtime, which compiles only what an ES module imports.
import native from '#native';
import module from './wasm/rollgate.wasm?module';

native.useModule(module);
