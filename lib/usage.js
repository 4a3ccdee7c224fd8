// The name of a method that limiters have for the middleware alone.
'use strict';

/** `limiter[USAGE](id)`: a Decision about nothing, whose `limits` tell what is used as it is. Only a block refuses it. */
const USAGE = Symbol('usage');

module.exports = { USAGE };
