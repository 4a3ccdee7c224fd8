// TODO(merge): remove; everything is in ../oracle.js.
'use strict';

module.exports = require('../oracle.js');
