import commonjs from '@rollup/plugin-commonjs';
import json from '@rollup/plugin-json';
import nodeResolve from '@rollup/plugin-node-resolve';

export default {
  input: 'app.js',
  output: { file: 'dist/rollup/app.mjs', format: 'es' },
  plugins: [nodeResolve({ preferBuiltins: true }), commonjs(), json()],
};
