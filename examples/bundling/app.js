// The program that all bundlers but Next make a bundle of.
'use strict';

require('./decisions')().then(
  (waits) => console.log(JSON.stringify(waits)),
  (error) => {
    console.error(error); // left to Node, it would print a line of the bundle first, which is long
    process.exitCode = 1;
  },
);
