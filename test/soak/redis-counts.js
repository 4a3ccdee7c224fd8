// Ids that are used up on Redis: how many calls passed in one life of the server, by what callers saw.
'use strict';

const { Admissions } = require('./admissions');

const HOUR = 3_600_000;
const LIMIT = { interval: HOUR, maxInInterval: 20, countBlocked: false };
const SHORT_LIMIT = { interval: 100, maxInInterval: 5, countBlocked: false };
const TOLERANCE_MS = 2;
const REFUSALS = 4;

/** One id, in one life of the server. */
class UsedUp {
  allowed = 0;
  refused = 0;
  lost = 0;
  pending = 0;

  constructor(id, stage) {
    Object.assign(this, { id, stage });
  }
}

/**
 * Calls `limiters`, of LIMIT and one namespace, in turn until an id is used up, then with the next.
 * Exactly the limit passes but for the calls of which nobody knows what became of them; where `resends`,
 * a client may have made those twice, and nothing is said of how few may pass.
 */
function useUp({ soak, outages, call, limiters, name, resends }) {
  let current;
  let made = 0;
  let calls = 0;
  const renew = () => {
    made += 1;
    current = new UsedUp(`${name} ${outages.stage} ${made}`, outages.stage);
  };

  function judge(one) {
    const { maxInInterval } = LIMIT;
    const { id, allowed, lost, stage } = one;
    const text = `${allowed} of ${maxInInterval} passed for '${id}', ${lost} were lost`;
    if (allowed > maxInInterval) soak.violate(text);
    if (resends || outages.stage !== stage || one.refused === 0 || one.pending > 0) return;
    if (allowed + lost < maxInInterval) soak.violate(text);
  }

  return async () => {
    if (current?.stage !== outages.stage || current.refused >= REFUSALS) renew();
    const one = current;
    const { stage } = one;
    const limiter = limiters[calls++ % limiters.length];
    one.pending += 1;
    const outcome = await call(() => limiter(one.id));
    one.pending -= 1;
    if (typeof outcome !== 'number' || stage !== outages.stage) one.lost += 1;
    else if (outcome > 0) one.refused += 1;
    else if (outages.isUp) one.allowed += 1;
    judge(one);
  };
}

/** Calls `limiter`, of SHORT_LIMIT, with a few ids as often as it can. */
function pressOn({ soak, outages, call, limiter }) {
  let made = 0;
  const known = new Map();
  return async () => {
    made += 1;
    const { stage } = outages;
    const id = `${stage} ${made % 3}`;
    if (!known.has(id)) known.set(id, new Admissions(SHORT_LIMIT, TOLERANCE_MS));
    const start = performance.now();
    const outcome = await call(() => limiter(id));
    if (outcome !== 0 || stage !== outages.stage || !outages.isUp) return;
    if (known.get(id).add(start, performance.now())) return;
    soak.violate(`more than ${SHORT_LIMIT.maxInInterval} passed in ${SHORT_LIMIT.interval} ms`);
  };
}

module.exports = { LIMIT, SHORT_LIMIT, pressOn, useUp };
