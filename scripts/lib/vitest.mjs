// Vitest, which one test runs: the recipe for tests with Vitest. It is not among the packages for development.
import { npmFolder } from './npm-folder.mjs';

/** The last major version that runs on Node.js 20. */
const VERSIONS = { vitest: '4.1.12' };

/** The folder whose node_modules has Vitest, installed now if it is missing. */
export const vitestFolder = () => npmFolder('vitest', VERSIONS);
