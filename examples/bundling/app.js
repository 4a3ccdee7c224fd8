// The program that all bundlers but Next make a bundle of.
'use strict';

require('./decisions')().then((waits) => console.log(JSON.stringify(waits)));
