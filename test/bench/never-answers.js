// A benchmark's process that goes on for ever.
'use strict';

setInterval(() => {}, 1000);
