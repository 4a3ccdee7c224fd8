// The program that all bundlers but Next bundle.
'use strict';

require('./decisions')().then(
  (waits) => console.log(JSON.stringify(waits)),
  (error) => {
    console.error(error); // Node would print a line of the bundle first, which is long
    process.exitCode = 1;
  },
);
