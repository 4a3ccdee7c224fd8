module.exports = require('./kv-stores'); // TODO(merge): remove
