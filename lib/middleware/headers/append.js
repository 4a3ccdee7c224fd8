// Adds a value to a list header, so that limiters behind one another all appear in it.
'use strict';

/** The way of res.appendHeader, which Node 18.0 does not have. */
function appendHeader(res, name, value) {
  const earlier = res.getHeader(name);
  res.setHeader(name, earlier === undefined ? value : [].concat(earlier, value));
}

module.exports = { appendHeader };
