'use strict';

module.exports = {
  mode: 'production',
  target: 'node',
  entry: './app.js',
  output: { path: `${__dirname}/dist/webpack`, filename: 'app.js' },
};
