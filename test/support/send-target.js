module.exports = require('./tcp-peers'); // TODO(merge): remove
