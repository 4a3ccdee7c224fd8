module.exports = require('./set-up'); // TODO(merge): remove
