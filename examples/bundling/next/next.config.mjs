import { dirname } from 'node:path';

export default {
  output: 'standalone',
  serverExternalPackages: ['rollgate'],
  outputFileTracingRoot: dirname(import.meta.dirname), // here node_modules is in the folder above
};
