// rollgate/fetch for Vercel's Edge Runtime.
import './edge-light.mjs';
import fetch from './fetch.js';

export const { rateLimitFetch } = fetch;
