// Bars in panels beside and below one another: a row for each subject, a whisker for its spread, its figure in digits.
'use strict';

const { round, text } = require('./svg');
const { WIDTH, frame, path, short, whisker } = require('./plot');
const { linearScale } = require('./plot-scale');
const { number } = require('./report');

const TOP = 62;
const ROW = 19;
const HEAD = 26; // the panel's title
const FOOT = 44; // its ticks and unit
const GAP = 16;
const FIGURE = 62; // room for the figure beside the longest bar

/**
 * `rows`: { label, kind: 'ours' | 'own' | 'peer' }. `bands`: rows of panels { title, unit, values },
 * with a value for each row: { figure, min, max }, { error }, or undefined where nothing was measured.
 * Panels of a band that share a scale are to say so: `isOneScale`.
 */
function barPlot({ title, subtitle, description, rows, bands, labelWidth = 232, isOneScale }) {
  const bandHeight = HEAD + rows.length * ROW + FOOT;
  const parts = bands.flatMap((panels, band) => {
    const top = TOP + band * bandHeight;
    const room = (WIDTH - 16 - labelWidth) / panels.length - GAP;
    const shared = isOneScale ? panels.flatMap(({ values }) => values.map(greatest)) : undefined;
    return [
      ...rows.map(({ label, kind }, row) =>
        drawLabel(label, kind, labelWidth - 8, middleOf(top, row)),
      ),
      ...panels.map((panel, i) => {
        const left = labelWidth + i * (room + GAP);
        return drawPanel(panel, { rows, left, top, room, shared });
      }),
    ];
  });
  const height = TOP + bands.length * bandHeight;
  return frame({ title, subtitle, description, height }, parts);
}

const middleOf = (top, row) => top + HEAD + (row + 0.5) * ROW;
const greatest = (value) => value?.max ?? value?.figure ?? Number.NaN;

function drawLabel(label, kind, right, middle) {
  const weight = kind === 'ours' ? ' font-weight="600"' : '';
  return text(right, middle + 4, label, ` class="word" text-anchor="end"${weight}`);
}

function drawPanel({ title, unit, values }, { rows, left, top, room, shared }) {
  const bottom = top + HEAD + rows.length * ROW;
  const scale = linearScale(shared ?? values.map(greatest), [left, left + room - FIGURE]);
  return [
    text(left, top + 15, title, ' class="word" font-weight="600"'),
    ...scale.ticks.map((value) => {
      const across = round(scale.pixel(value));
      return path(
        value === 0 ? 'axis' : 'grid',
        `M${across} ${round(top + HEAD)}V${round(bottom)}`,
      );
    }),
    ...scale.ticks.map((value) => {
      const words = ' class="note" font-size="11" text-anchor="middle"';
      return text(scale.pixel(value), bottom + 14, short(value), words);
    }),
    text(left, bottom + 29, unit, ' class="note" font-size="11"'),
    ...rows.map(({ kind }, row) => drawBar(values[row], kind, scale, middleOf(top, row))),
  ].join('\n');
}

function drawBar(value, kind, scale, middle) {
  const start = scale.pixel(0);
  const note = (words) => text(start + 5, middle + 4, words, ' class="note" font-size="11"');
  if (value?.error) return note('failed');
  if (!value || !Number.isFinite(value.figure)) return note('not measured');
  const { figure, min = figure, max = figure } = value;
  const end = scale.pixel(figure);
  const width = Math.max(end - start, 1);
  const bar = `<rect class="${kind}" stroke="none" x="${round(start)}" y="${round(middle - 6)}" width="${round(width)}" height="12"/>`;
  const across = Math.max(end, scale.pixel(max)) + 5;
  const weight = kind === 'ours' ? ' font-weight="600"' : '';
  const words = figure < 1e6 ? number(figure) : short(figure);
  const digits = text(across, middle + 4, words, ` class="word halo" font-size="11"${weight}`);
  return [bar, whisker(middle, [scale.pixel(min), scale.pixel(max)]), digits]
    .filter((part) => part !== '')
    .join('\n');
}

module.exports = { barPlot };
