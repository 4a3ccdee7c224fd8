// The storage for @nestjs/throttler, for import.
import nest from './nest.js';

export const { RollgateThrottlerStorage } = nest;
