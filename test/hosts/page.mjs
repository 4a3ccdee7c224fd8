// What a page shows of rollgate: the results of the program, or the errors of a page that forbids WebAssembly.
import * as rollgate from 'rollgate';
import { run, unsupported } from './program.mjs';

function errorOfLimiter() {
  try {
    rollgate.RateLimiter({ interval: 1000, maxInInterval: 1 });
  } catch ({ name, code, message }) {
    return { name, code, message };
  }
}

globalThis.rollgatePage = {
  run: () => run(rollgate),
  unsupported: () => unsupported(rollgate),
  errorOfLimiter,
};
