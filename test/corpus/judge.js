// Which promises a subject of the corpus keeps, and the table of docs/comparison.md.
'use strict';

const { PROMISES, findFailure, neverMore, textOf } = require('./promises');

const COLUMNS = {
  interval: 'never more in any interval',
  wait: 'refused until the stated wait',
  refusals: 'a refusal leaves no trace',
  clock: 'steps of the clock',
  limits: 'a new limit keeps what was counted',
};

const withCheck = ([kind, check]) => ({ kind, check });

/** What is checked of a promise: each a kind of failure, and whether the subject excludes it. */
function checksOf(subject, promise) {
  const { promised, promisedSteps } = subject;
  const isPromised = promised.includes(promise);
  const checks = Object.entries(PROMISES[promise].checks).map(withCheck);
  if (promise === 'interval' && promisedSteps !== undefined && subject.most(3) > 3) {
    // A promise of its own, so a weaker one is checked, too.
    const bound = (one, trace) => neverMore(one, trace, one.most);
    return [
      { kind: 'above its bound', check: bound, isPromised },
      { ...checks[0], isPromised: false },
    ];
  }
  return checks.map(({ kind, check }) => {
    const steps = promisedSteps ?? [];
    return { kind, check, isPromised: isPromised || (promise === 'clock' && steps.includes(kind)) };
  });
}

/** What breaks a promise: `{ kind, isPromised, text }` of each kind that was found, and how many traces were tried. */
async function judgePromise(subject, promise, traces) {
  const failures = [];
  let most = 0;
  const on = (promise === 'clock' && subject.onSteps) || subject;
  for (const { kind, check, isPromised } of checksOf(subject, promise)) {
    if (kind === 'to 1 ms' && failures.length > 0) continue;
    const { tried, failure } = await findFailure(check, on, traces);
    most = Math.max(most, tried);
    if (failure !== null) failures.push({ kind, isPromised, text: textOf(failure) });
  }
  return { tried: most, failures };
}

/** By promise, what judgePromise gives, or `cannot`: why it was not judged. */
async function judge(subject, traces) {
  const verdicts = {};
  for (const promise of Object.keys(PROMISES)) {
    const cannot = subject.cannot?.[promise];
    const ofPart = traces.filter(({ part }) => part === PROMISES[promise].part);
    const { oneOf = 1, oneOfShort = Math.min(oneOf, 3) } = subject;
    const isShort = promise === 'clock' || promise === 'limits';
    const every = isShort ? oneOfShort : oneOf; // odd: every second trace is of another kind
    const some = ofPart.filter((_, i) => i % every === 0);
    verdicts[promise] = cannot ? { cannot } : await judgePromise(subject, promise, some);
  }
  return verdicts;
}

/** Whether a subject breaks what it promises. */
const breaksPromise = (verdicts) =>
  Object.values(verdicts).some(({ failures = [] }) => failures.some((one) => one.isPromised));

/** A cell; `note(text)` gives the number of a trace below the table. */
function cellOf({ cannot, failures }, note) {
  if (cannot) return cannot;
  if (failures.length === 0) return 'yes';
  const shown = failures.map(({ kind, isPromised, text }) => {
    const name = kind === '' ? '' : `${kind} `;
    return isPromised ? `**no**: ${name}[${note(text)}]` : `${name}[${note(text)}]`;
  });
  const isWhole = failures.some(({ isPromised }) => isPromised);
  return isWhole || failures[0].kind === 'to 1 ms'
    ? shown.join(', ')
    : `not promised: ${shown.join(', ')}`;
}

const summaryOf = (verdicts) =>
  JSON.stringify(Object.values(verdicts).map((verdict) => cellOf(verdict, () => '')));

/** Rows of subjects with the same verdicts become one. */
function grouped(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.group ?? row.name} ${row.reads} ${summaryOf(row.verdicts)}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()];
}

/** Markdown: a row for each subject `{ name, group, reads, algorithm, verdicts }`, and the traces below. */
function tableOf(rows) {
  const notes = new Map(); // titles by text
  const noteIn = (title) => (text) => {
    notes.set(text, new Set(notes.get(text)).add(title));
    return [...notes.keys()].indexOf(text) + 1;
  };
  const lines = grouped(rows).map((group) => {
    const [{ group: title, name, algorithm, reads, verdicts }] = group;
    const shown = title
      ? `${title}: ${group.map((row) => row.name).join('; ')}`
      : `${name} ${group[0].version}`;
    const cells = Object.entries(verdicts).map(([promise, verdict]) =>
      cellOf(verdict, noteIn(`${title ?? name}, ${COLUMNS[promise]}`)),
    );
    return `| ${[shown, algorithm, reads, ...cells].join(' | ')} |`;
  });
  const head = ['limiter', 'algorithm', 'time', ...Object.values(COLUMNS)];
  return [
    `| ${head.join(' | ')} |`,
    `|${'---|'.repeat(head.length)}`,
    ...lines,
    '',
    'The smallest traces that were found:',
    '',
    ...[...notes].map(([text, titles], i) => `${i + 1}. ${[...titles].join('; ')}: ${text}`),
  ].join('\n');
}

module.exports = { breaksPromise, judge, tableOf };
