// A test environment in which the tests of a file that come after a failure are left out: for a mutation, one is enough.
'use strict';

const { TestEnvironment } = require('jest-environment-node');

module.exports = class extends TestEnvironment {
  #hasFailed = false;

  handleTestEvent({ name, test }) {
    if (name === 'test_fn_failure' || name === 'hook_failure') this.#hasFailed = true;
    // Errors of hooks are already in the tests of their group.
    if (name === 'test_start' && this.#hasFailed && test.errors.length === 0) test.mode = 'skip';
  }
};
