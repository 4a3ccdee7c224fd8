module.exports = require('./redis-cluster'); // TODO(merge): remove
