// The list of rate-limit headers a middleware can send: adding a draft is adding a line.
'use strict';

const { writeLegacyHeaders } = require('./legacy');
const { writeDraft6Headers } = require('./draft-6');
const { writeDraft7Headers } = require('./draft-7');
const { writeDraft8Headers } = require('./draft-8');
const { writeDraft10Headers } = require('./draft-10');

const WRITERS = {
  'draft-6': writeDraft6Headers,
  'draft-7': writeDraft7Headers,
  'draft-8': writeDraft8Headers,
  'draft-10': writeDraft10Headers,
};

/** Those whose policies have names. */
const NAMING = ['draft-8', 'draft-10'];

const HEADER_DRAFTS = Object.keys(WRITERS);

/**
 * The functions (res, info, decision, nowMs, names) that write what the settings ask for; `names` are
 * those of the policies, where `namesPolicies(standardHeaders)` says so.
 */
function headerWriters({ legacyHeaders, standardHeaders }) {
  const writers = [];
  if (legacyHeaders) writers.push(writeLegacyHeaders);
  if (standardHeaders) writers.push(WRITERS[standardHeaders]);
  return writers;
}

function namesPolicies(standardHeaders) {
  return NAMING.includes(standardHeaders);
}

module.exports = { HEADER_DRAFTS, headerWriters, namesPolicies };
