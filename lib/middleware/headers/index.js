// The list of rate-limit headers a middleware can send: adding a draft is adding a line.
'use strict';

const { writeLegacyHeaders } = require('./legacy');
const { writeDraft6Headers } = require('./draft-6');

const WRITERS = {
  'draft-6': writeDraft6Headers,
};

const HEADER_DRAFTS = Object.keys(WRITERS);

/** The functions (res, info, decision, nowMs) that write what the settings ask for. */
function headerWriters({ legacyHeaders, standardHeaders }) {
  const writers = [];
  if (legacyHeaders) writers.push(writeLegacyHeaders);
  if (standardHeaders) writers.push(WRITERS[standardHeaders]);
  return writers;
}

module.exports = { HEADER_DRAFTS, headerWriters };
