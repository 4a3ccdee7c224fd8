// The same export for import.
import fetch from './fetch.js';

export const { rateLimitFetch } = fetch;
