// The types of rollgate/nest for import.

export type {
  RollgateThrottlerStorageOptions,
  RollgateThrottlerStorageRecord,
} from './nest.js';
export { RollgateThrottlerStorage } from './nest.js';
