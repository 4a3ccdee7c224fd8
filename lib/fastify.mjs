// The Fastify plugin for import.
import rollgate from './fastify.js';

export default rollgate;
export { rollgate };
