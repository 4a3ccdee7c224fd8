// A benchmark's process that ends well and tells nothing.
'use strict';
