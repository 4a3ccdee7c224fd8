// The store for express-rate-limit, for import.
import RollgateStore from './store.js';

export default RollgateStore;
export { RollgateStore };
