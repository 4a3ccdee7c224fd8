'use strict';

module.exports = require('./random-traces'); // TODO(merge): remove
