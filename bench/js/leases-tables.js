// The tables of the benchmark of leases: what is aimed at, speed, what one id costs and loses, many ids, others.

const { DASH, failures, figureOf, number, range, ratio, rounds } = require('./report');

const FLIGHTS = [1, 64, 512];
const HOLDERS = [2, 4, 8];
const SPREADS = ['even', 'skewed'];
const LOADS = [0.7, 0.95, 1.2];

const scenarioOf = (spread, load) => `${spread}, load ${load}`;

const SPEED = { with: 'rollgate with leases', without: 'rollgate' };
const OTHERS = {
  leases: 'rollgate with leases of 100 ms',
  flexible: 'rate-limiter-flexible, each attempt on Redis',
  flexibleWithSync: 'rate-limiter-flexible with sync, every 10th action',
  writeBehind: 'write-behind counter, 100 ms',
};

const AIMS = {
  speed: { 1: 50, 64: 10, 512: 10 },
  commands: { 0.7: 0.13, 0.95: 0.45, 1.2: 0.6 },
  share: 0.99,
  zipfCommands: 0.8,
  zipfP99: 1.1,
};

const percentOf = (stat, digits) => (stat ? `${stat.figure.toFixed(digits)} %` : DASH);
const share = (stat) => (stat ? (stat.figure / 100).toFixed(4) : DASH);
const three = (stat) => (stat ? stat.figure.toFixed(3) : DASH);

function tables(results) {
  return [
    aimsTable(results),
    speedTable(results),
    ...HOLDERS.map((count) => heldTable(results[`held/${count}`], count)),
    zipfTable(results),
    othersTable(results),
  ];
}

const divided = (a, b) => (a && b ? a.figure / b.figure : NaN);

function aimsTable(results) {
  const speed = FLIGHTS.map((inFlight) => [
    `checks/s of one id, ${inFlight} in flight, to without leases`,
    divided(
      results['speed/with'][`perSecond${inFlight}`],
      results['speed/without'][`perSecond${inFlight}`],
    ),
    '≥',
    AIMS.speed[inFlight],
  ]);
  const commands = LOADS.map((load) => [
    `commands per attempt, 4 holders, load ${load}`,
    results['held/4'][`commandsPerAttempt ${scenarioOf('even', load)}`]?.figure,
    '≤',
    AIMS.commands[load],
  ]);
  const shares = HOLDERS.flatMap((count) => sharesOf(results[`held/${count}`]));
  const zipf = [
    [
      'commands per attempt, 1,000 ids by Zipf',
      results['zipf/commands'].commandsPerAttempt?.figure,
      '≤',
      AIMS.zipfCommands,
    ],
    [
      'p99, 1,000 ids by Zipf, to without leases',
      divided(results['zipf/with'].p99, results['zipf/without'].p99),
      '≤',
      AIMS.zipfP99,
    ],
  ];
  const least = shares.length > 0 ? Math.min(...shares) : undefined;
  const lost = ['least share of what an exact log allows', least, '≥', AIMS.share];
  return {
    title: 'What leases aim at',
    columns: ['', 'measured', 'goal', 'reached'],
    rows: [...speed, ...commands, lost, ...zipf].map(([what, value, sign, goal]) => [
      what,
      value === undefined ? DASH : value < 1 ? value.toFixed(3) : number(value),
      `${sign} ${goal}`,
      met(value, sign, goal),
    ]),
  };
}

function met(value, sign, goal) {
  if (!Number.isFinite(value)) return DASH;
  return (sign === '≥' ? value >= goal : value <= goal) ? 'yes' : 'no';
}

const sharesOf = (result) =>
  Object.entries(result)
    .filter(([name]) => name.startsWith('sharePercent'))
    .map(([, { figure }]) => figure / 100);

function speedTable(results) {
  const of = (name) => results[`speed/${name}`];
  return {
    title: 'Checks per second of one id, limit out of reach',
    columns: ['', 'in flight', 'checks/s', 'min – max', 'to without', 'rounds'],
    rows: FLIGHTS.flatMap((inFlight) =>
      Object.entries(SPEED).map(([name, label]) => {
        const rate = of(name)[`perSecond${inFlight}`];
        const base = of('without')[`perSecond${inFlight}`];
        return [
          label,
          String(inFlight),
          figureOf(rate),
          range(rate),
          ratio(rate, base),
          rounds(of(name)),
        ];
      }),
    ),
    notes: failures(Object.entries(SPEED).map(([name, label]) => [label, of(name)])),
  };
}

function heldTable(result, count) {
  return {
    title: `One id with ${count} holders, 600 in 1 s`,
    columns: [
      '',
      'commands per attempt',
      'min – max',
      'share of an exact log',
      'least',
      'most in one interval, over the limit',
      'rounds',
    ],
    rows: SPREADS.flatMap((spread) =>
      LOADS.map((load) => {
        const id = scenarioOf(spread, load);
        const part = result[`sharePercent ${id}`];
        const commands = result[`commandsPerAttempt ${id}`];
        return [
          id,
          three(commands),
          commands ? `${commands.min.toFixed(3)} – ${commands.max.toFixed(3)}` : DASH,
          share(part),
          part ? (part.min / 100).toFixed(4) : DASH,
          worst(result[`overPercent ${id}`]),
          rounds(result),
        ];
      }),
    ),
    notes: failures([[`${count} holders`, result]]),
  };
}

const worst = (stat) => (stat ? `${stat.max.toFixed(1)} %` : DASH);

function zipfTable(results) {
  const [with_, without, counted] = ['with', 'without', 'commands'].map(
    (name) => results[`zipf/${name}`],
  );
  const row = (label, result, commands) => [
    label,
    figureOf(result.p50),
    ratio(result.p50, without.p50),
    figureOf(result.p99),
    range(result.p99),
    ratio(result.p99, without.p99),
    commands,
    three(result.commandsRunPerAttempt),
    rounds(result),
  ];
  return {
    title: '1,000 ids by Zipf, 4,000 attempts/s, 4 holders, 600 in 1 s each',
    columns: [
      '',
      'p50 µs',
      'to without',
      'p99 µs',
      'min – max',
      'to without',
      'commands per attempt',
      'runs of the script per attempt',
      'rounds',
    ],
    rows: [
      row(SPEED.with, with_, three(counted.commandsPerAttempt)),
      row(SPEED.without, without, without.p50 ? '1' : DASH),
    ],
    notes: failures([
      [SPEED.with, with_],
      [SPEED.without, without],
      ['the count of commands', counted],
    ]),
  };
}

function othersTable(results) {
  const entries = Object.entries(OTHERS).map(([name, label]) => [label, results[`others/${name}`]]);
  return {
    title: 'Beside others: 4 holders, load 1.2, 600 in 1 s',
    columns: [
      '',
      'most in one interval, over the limit',
      'median of rounds',
      'allowed, to an exact log',
      'rounds',
    ],
    rows: entries.map(([label, result]) => [
      label,
      worst(result.overPercent),
      percentOf(result.overPercent, 1),
      share(result.sharePercent),
      rounds(result),
    ]),
    notes: failures(entries),
  };
}

module.exports = { FLIGHTS, HOLDERS, LOADS, SPREADS, scenarioOf, tables };
