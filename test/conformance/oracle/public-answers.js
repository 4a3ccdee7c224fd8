'use strict';

module.exports = require('../oracle.js'); // TODO(merge): remove
