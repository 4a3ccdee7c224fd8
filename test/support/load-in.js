module.exports = require('./run-program'); // TODO(merge): remove
