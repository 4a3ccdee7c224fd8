// Customers with plans: limits and calendars that come with calls, in random traces.
'use strict';

const { zoneIn } = require('../support/boundaries');
const { windowAt } = require('../support/local-time');
const { randomStartsOn } = require('../support/traces');
const { RULES } = require('./oracle');

/** Where stores change the form of a state. */
const THRESHOLDS = [14, 15, 16, 256, 257, 258, 1000, 1001, 1023, 1024, 1025, 3000];
const LARGE = [2 ** 24 - 2, 2 ** 24 - 1, 2 ** 24, 2 ** 24 + 1, 2 ** 32 + 1];

/** Days that are 26 hours apart, begin at 01:00, come twice or change by half an hour. */
const ZONES = [
  ...['UTC', 'Europe/Berlin', 'America/Nuuk', 'America/Havana', 'Africa/Cairo', 'Asia/Beirut'],
  ...['Australia/Lord_Howe', 'Antarctica/Troll', 'Asia/Kathmandu', 'Asia/Tokyo'],
  ...['Pacific/Kiritimati', 'Pacific/Pago_Pago'],
];

const MICROS = 1_000_000;
const entries = new Map(ZONES.map((name) => [name, zoneOf(name)]));

function zoneOf(name) {
  return name === 'UTC' ? { offset: 0, changes: [] } : zoneIn(name, 2026);
}

/** For oracles: the window of a calendar that contains a moment, by the table of boundaries. In us. */
function findWindow(calendar, at) {
  const { unit, timeZone, startsOn } = calendar;
  const zone = entries.get(timeZone);
  const { ordinal, start, end } = windowAt(
    zone,
    { calendar: unit, startsOn },
    Math.floor(at / MICROS),
  );
  return { ordinal, start: start * MICROS, end: end * MICROS };
}

const UNITS = ['hour', 'day', 'day', 'week', 'month', 'month', 'year'];

/** Where and when windows begin, as far as it is given; sometimes neither is. */
function randomBeginning(random, unit) {
  const startsOn = random.chance(60) ? randomStartsOn(random, unit) : undefined;
  return {
    ...(random.chance(80) && { timeZone: random.pick(ZONES) }),
    ...(startsOn !== undefined && { startsOn }),
  };
}

const randomCalendar = (random, unit) => {
  return { unit, timeZone: 'UTC', ...randomBeginning(random, unit) };
};

/** Small mostly; `largest` bounds all. */
function randomLimit(random, largest) {
  if (random.chance(80)) return random.between(1, 7);
  const limits = [...THRESHOLDS, ...LARGE].filter((limit) => limit <= largest);
  return limits.length === 0 ? random.between(1, Math.min(largest, 9)) : random.pick(limits);
}

/**
 * A policy for customers with plans. Several windows have names, because only those can have limits of a call; a single
 * one may have one. Windows of calendars only where windows are fixed.
 */
function randomPlansPolicy(random, options) {
  const { algorithm, units, largest, roomForRecords } = options;
  const unit = random.pick(units);
  // So that even what is used of a large limit leaks under a small one in less than 285 years.
  const most =
    algorithm === 'gcra' ? Math.min(largest, Math.floor(2 ** 49 / (40 * unit))) : largest;
  const count = random.chance(55) ? 1 : random.between(2, 3);
  const hasNames = count > 1 || random.chance(20);
  const limits = Array.from({ length: count }, (_, i) => ({
    ...(hasNames && { name: `n${i}` }),
    ...(algorithm === 'fixed-window' && random.chance(60)
      ? { calendar: randomCalendar(random, random.pick(UNITS)) }
      : { interval: random.between(1, 40) * unit }),
    maxInInterval: randomLimit(random, most),
  }));
  const blocks = random.chance(75) ? 0 : random.between(1, 2);
  return {
    algorithm,
    unit,
    largest: most,
    roomForRecords,
    limits,
    findWindow,
    minDifference: random.chance(15) ? random.between(1, 12) * unit : 0,
    countBlocked: RULES[algorithm].countsBlocked && random.chance(50),
    blockFor: Array.from({ length: blocks }, () => random.between(1, 60) * unit),
  };
}

const YEAR = 365 * 86_400;
/** So that no window of a year goes on behind the end of the table. */
const LAST_START = (Date.UTC(2030, 0) / 1000) * MICROS;

/** Now, or near a change of the offset of one of the policy's zones. */
function randomStartFor(random, { limits, unit }) {
  const changes = limits.flatMap(({ calendar }) =>
    calendar ? entries.get(calendar.timeZone).changes : [],
  );
  const inYears = changes.filter(
    ([at]) => at > Date.UTC(2024, 6) / 1000 && at < Date.UTC(2029, 6) / 1000,
  );
  if (inYears.length > 0 && random.chance(70)) {
    return (random.pick(inYears)[0] + random.between(-50, 10) * 1800) * MICROS;
  }
  return (Date.UTC(2026, 0) / 1000 + random.between(0, YEAR)) * MICROS + random.between(0, unit);
}

/** What customers of a policy do: each has two plans and changes between them at random. */
class Customers {
  #plans = new Map();

  /** Adds what an operation needs: terms and cost, or the limits that setLimits takes. */
  complete(random, operation, policy) {
    const { kind, id } = operation;
    if (kind === 'setLimits') {
      operation.maxima = policy.limits.map(() => randomLimit(random, policy.largest));
    }
    if (!['attempt', 'peek', 'usage', 'record'].includes(kind)) return;
    const plan = random.chance(20) ? {} : random.pick(this.#plansOf(random, id, policy));
    const limits = kind === 'record' ? undefined : plan.limits;
    const { calendar } = plan;
    if (limits !== undefined || calendar !== undefined) operation.terms = { limits, calendar };
    if (kind !== 'usage') operation.cost = randomCosts(random, policy, limits, kind === 'record');
  }

  /** What an attempt came to: at most what was reserved. */
  actual(random, cost) {
    return Array.isArray(cost) ? cost.map((each) => random.between(0, each)) : undefined;
  }

  #plansOf(random, id, policy) {
    if (!this.#plans.has(id)) {
      this.#plans.set(id, [randomPlan(random, policy), randomPlan(random, policy)]);
    }
    return this.#plans.get(id);
  }
}

/** `limits` has a maximum for some windows, `calendar` a zone, a beginning or both. */
function randomPlan(random, policy) {
  const limits = policy.limits.map(() => {
    if (policy.limits.length > 1 && random.chance(30)) return undefined;
    return random.chance(6) ? 0 : randomLimit(random, policy.largest);
  });
  const calendars = policy.limits.flatMap(({ calendar }) => calendar ?? []);
  const plan = limits.some((limit) => limit !== undefined) ? { limits } : {};
  if (calendars.length === 0 || random.chance(50)) return plan;
  const unit = calendars.length === 1 ? calendars[0].unit : undefined;
  return { ...plan, calendar: randomBeginning(random, unit) };
}

/** A number for every window, or an array of one for each, which is not all 0. */
function randomCosts(random, policy, limits, isRecord) {
  // Above a limit of the call, an attempt is refused; above one of the limiter it is an error.
  const mostOf = ({ maxInInterval }, i) => {
    if (isRecord) return random.chance(10) ? 2 * maxInInterval : maxInInterval;
    return limits?.[i] === undefined ? maxInInterval : limits[i] + (random.chance(10) ? 1 : 0);
  };
  const most = policy.limits.map((limit, i) => Math.min(mostOf(limit, i), 2 ** 31 - 1));
  const costWithin = (largest) => {
    if (random.chance(60) || largest <= 1) return 1;
    return random.chance(30) ? largest : random.between(1, largest);
  };
  if (!hasAllNames(policy) || random.chance(40)) return costWithin(Math.min(...most));
  const costs = most.map((largest) =>
    random.chance(25) || largest === 0 ? 0 : costWithin(largest),
  );
  return costs.some((cost) => cost > 0) ? costs : 1;
}

const hasAllNames = ({ limits }) => limits.every(({ name }) => name !== undefined);

const largestOf = ({ limits }) => Math.max(...limits.map(({ maxInInterval }) => maxInInterval));

/** A policy with other maxima. */
function maximaOf(policy, maxima) {
  const limits = policy.limits.map((limit, i) => ({ ...limit, maxInInterval: maxima[i] }));
  const { largestOwn = largestOf(policy) } = policy;
  return { ...policy, limits, largestOwn: Math.max(largestOwn, ...maxima) };
}

/** What a call brings, as the oracle takes it. */
function termsOf(terms, { limits }) {
  if (terms === undefined) return undefined;
  const { calendar: own } = terms;
  const calendarOf = ({ calendar }) => own && calendar && { ...calendar, ...own };
  return { limits: terms.limits, calendars: limits.map(calendarOf) };
}

/** The same as options of a call. */
function optionsOfTerms(terms, policy) {
  if (terms === undefined) return {};
  const { limits, calendar } = terms;
  return {
    ...(limits !== undefined && { limits: limitsOption(limits, policy) }),
    ...(calendar !== undefined && { calendar }),
  };
}

function byName(numbers, { limits }) {
  const named = limits.map(({ name }, i) => [name, numbers[i]]);
  return Object.fromEntries(named.filter(([, one]) => one !== undefined));
}

/** A single one may come without its name, also where it has one. */
function limitsOption(limits, policy) {
  const [{ name }, ...others] = policy.limits;
  const isNumber = name === undefined || (others.length === 0 && limits[0] % 2 === 1);
  return isNumber ? limits[0] : byName(limits, policy);
}

/** A cost of the oracle as a limiter takes it. */
function costOption(cost, policy) {
  return Array.isArray(cost) ? byName(cost, policy) : cost;
}

/** A window of the oracle as an option. */
function windowOption({ name, interval, calendar, maxInInterval }) {
  const { unit, ...beginning } = calendar ?? {};
  const length = calendar ? { calendar: unit, ...beginning } : { interval: interval / 1000 };
  return { ...(name !== undefined && { name }), ...length, maxInInterval };
}

module.exports = {
  Customers,
  LAST_START,
  costOption,
  findWindow,
  maximaOf,
  optionsOfTerms,
  randomPlansPolicy,
  randomStartFor,
  termsOf,
  windowOption,
};
