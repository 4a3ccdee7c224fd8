module.exports = require('./outcome'); // TODO(merge): remove
