// Turns results into tables: cells, ratios to rollgate, and the two ways to print them (terminal and Markdown).

const DASH = '–';

/** A number with about three digits that matter. */
function number(value) {
  if (!Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en-US');
  if (size >= 10 || size === 0) return value.toFixed(size === 0 ? 0 : 1);
  return value.toFixed(2);
}

/** The two columns of a measured number: its figure, and its spread. */
const figureOf = (stat) => (stat ? number(stat.figure) : DASH);
const range = (stat) => (stat ? `${number(stat.min)} ${DASH} ${number(stat.max)}` : DASH);
const times = (ratio) => (Number.isFinite(ratio) ? `${digits(ratio)} x` : DASH);
const digits = (ratio) =>
  ratio < 0.01 ? ratio.toPrecision(1) : ratio.toFixed(ratio < 10 ? 2 : ratio < 100 ? 1 : 0);

/** How many times the one figure is the other: above 1 where the other is the smaller. */
const ratio = (stat, base) => (stat && base ? times(stat.figure / base.figure) : DASH);

/** How many runs a figure is of. */
const rounds = (result) => String(result.runs ?? 0);

const percent = (stat) => (stat ? `${Math.round(stat.figure)} %` : DASH);

/** A note for each subject that gave no result, from [label, result] pairs. */
const failures = (pairs) =>
  pairs
    .filter(([, result]) => result.error)
    .map(([label, { error }]) => `${label} failed: ${error}`);

function tableText({ title, columns, rows, notes = [] }) {
  const widths = columns.map((column, i) =>
    Math.max(column.length, ...rows.map((row) => row[i].length)),
  );
  const line = (cells) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
      .join('  ');
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [
    '',
    title,
    line(columns),
    rule,
    ...rows.map(line),
    ...notes.map((note) => `  * ${note}`),
  ].join('\n');
}

function tableMarkdown({ title, columns, rows, notes = [] }) {
  const escaped = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const rule = `|${columns.map((_, i) => (i === 0 ? '---' : '---:')).join('|')}|`;
  return [
    `### ${title}`,
    '',
    escaped(columns),
    rule,
    ...rows.map(escaped),
    ...(notes.length > 0 ? ['', ...notes.map((note) => `- ${note}`)] : []),
    '',
  ].join('\n');
}

/** Minutes and seconds. */
function clockText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/**
 * A progress line that overwrites itself on a terminal and is one line per job elsewhere. `whole(ms)`
 * puts what is to be said of the whole run before it, given what this benchmark will still take.
 */
function progressLine(name, whole = (ms) => `about ${clockText(ms)} left, `) {
  return ({ done, total, key, expectedMs }) => {
    const text = `${whole(expectedMs)}${name} ${done}/${total} ${key}`;
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[2K${text}${done === total ? '\n' : ''}`);
    else console.error(text);
  };
}

module.exports = {
  DASH,
  clockText,
  failures,
  figureOf,
  number,
  percent,
  progressLine,
  range,
  ratio,
  rounds,
  tableMarkdown,
  tableText,
  times,
};
