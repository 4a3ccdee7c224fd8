// The types of rollgate/store for import: a default export and the same name.

import RollgateStore from './store.js';

export default RollgateStore;
export type {
  RollgateStoreExisting,
  RollgateStoreHits,
  RollgateStoreInit,
  RollgateStoreLimits,
  RollgateStoreOptions,
} from './store.js';
export { RollgateStore } from './store.js';
