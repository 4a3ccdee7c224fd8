module.exports = require('./redis-server'); // TODO(merge): remove
