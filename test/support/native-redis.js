module.exports = require('./redis-clients'); // TODO(merge): remove
