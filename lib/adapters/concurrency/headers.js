// RateLimit-Policy for what runs at once: the drafts have a quota unit for it, and no state that a client could use.
'use strict';

const { appendHeader, quoted, readIdentifier, separatorOf } = require('../middleware/headers');
const { andThen } = require('../middleware/maybe-async');

const UNIT = 'qu="concurrent-requests"';

/**
 * A function (request, slot) that sets the header, and returns the name of the policy, or a promise of it; undefined
 * where a request needs none.
 */
function createPolicyHeader({ identifier, standardHeaders, problemDetails }) {
  const separator = separatorOf(standardHeaders);
  if (separator === undefined && !problemDetails) return () => undefined;

  const nameOf = ({ req, res }, { max }) => {
    if (typeof identifier === 'function') return andThen(identifier(req, res), readIdentifier);
    return identifier ?? `${max}-at-once`;
  };

  return (request, slot) =>
    andThen(nameOf(request, slot), (name) => {
      const { res } = request;
      if (separator === undefined || res.headersSent) return name;
      appendHeader(res, 'RateLimit-Policy', [quoted(name), `q=${slot.max}`, UNIT].join(separator));
      return name;
    });
}

module.exports = { createPolicyHeader };
