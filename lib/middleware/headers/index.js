// The list of rate-limit headers a middleware can send: adding a draft is adding a line.
'use strict';

const { createLegacyWriter } = require('./legacy');
const { createDraft6Writer } = require('./draft-6');
const { createDraft7Writer } = require('./draft-7');
const { createDraft8Writer } = require('./draft-8');
const { createDraft10Writer } = require('./draft-10');

const CREATORS = {
  'draft-6': createDraft6Writer,
  'draft-7': createDraft7Writer,
  'draft-8': createDraft8Writer,
  'draft-10': createDraft10Writer,
};

/** Those whose policies have names. */
const NAMING = ['draft-8', 'draft-10'];

const HEADER_DRAFTS = Object.keys(CREATORS);

/**
 * The functions (res, info, decision, nowMs, names) that write what the settings ask for; `names` are
 * those of the policies, where `namesPolicies(standardHeaders)` says so.
 */
function headerWriters({ legacyHeaders, standardHeaders }) {
  const writers = [];
  if (legacyHeaders) writers.push(createLegacyWriter());
  if (standardHeaders) writers.push(CREATORS[standardHeaders]());
  return writers;
}

function namesPolicies(standardHeaders) {
  return NAMING.includes(standardHeaders);
}

module.exports = { HEADER_DRAFTS, headerWriters, namesPolicies };
