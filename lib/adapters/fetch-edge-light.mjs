// rollgate/fetch for Vercel's Edge Runtime.
import '../native/edge-light.mjs';
import fetch from './fetch.js';

export const { rateLimitFetch } = fetch;
