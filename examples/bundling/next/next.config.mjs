import { dirname } from 'node:path';

export default {
  output: 'standalone',
  serverExternalPackages: ['rollgate'],
  outputFileTracingRoot: dirname(import.meta.dirname), // node_modules is in the parent folder here
};
