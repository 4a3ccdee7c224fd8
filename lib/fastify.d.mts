// The types of rollgate/fastify for import: a default export and the same name.

import rollgate from './fastify.js';

export default rollgate;
export type {
  RollgateFastifyByRules,
  RollgateFastifyFunctions,
  RollgateFastifyLimit,
  RollgateFastifyLimits,
  RollgateFastifyMax,
  RollgateFastifyOptions,
  RollgateFastifyPluginOptions,
  RollgateFastifyRule,
} from './fastify.js';
export { rollgate } from './fastify.js';
