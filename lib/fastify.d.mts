// The types of rollgate/fastify for import: a default export and the same name.

import rollgate from './fastify.js';

export default rollgate;
export type { RollgateFastifyFunctions, RollgateFastifyOptions } from './fastify.js';
export { rollgate } from './fastify.js';
