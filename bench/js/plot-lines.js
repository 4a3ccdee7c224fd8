// Lines over two logarithmic axes: a mark and a whisker at each point, each line named at its end.
'use strict';

const { at, round, text } = require('./svg');
const { WIDTH, frame, path, whisker } = require('./plot');
const { logScale } = require('./plot-scale');

const HEIGHT = 430;
const AREA = { left: 92, right: WIDTH - 256, top: 66, bottom: HEIGHT - 50 };
const LABEL_STEP = 17;
const MARKS = [
  (x, y) => `M${at(x - 4, y - 4)}h8v8h-8z`,
  (x, y) => `M${at(x, y - 5)}l5 9h-10z`,
  (x, y) => `M${at(x, y - 5.5)}l5.5 5.5l-5.5 5.5l-5.5-5.5z`,
  (x, y) => `M${at(x, y + 5)}l5-9h-10z`,
  (x, y) => `M${at(x - 5, y - 1.5)}h10v3h-10z`,
  (x, y) => `M${at(x - 1.5, y - 5)}h3v10h-3z`,
];
const ROUND_MARK = (x, y) => `M${at(x - 4.5, y)}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z`;

/**
 * `series`: { label, isOurs, error?, points: [{ x, figure, min, max }] }. `xTicks` are the values of x
 * to be marked, powers of ten unless given. A point that has no place on the axes is left out.
 */
function linePlot({ title, subtitle, description, xTitle, yTitle, xTicks, series }) {
  const drawable = series.map((one) => ({ ...one, points: one.error ? [] : pointsOf(one) }));
  const points = drawable.flatMap((one) => one.points);
  const x = logScale(
    points.map((point) => point.x),
    [AREA.left + 14, AREA.right - 14],
  );
  const y = logScale(
    points.flatMap(({ figure, min, max }) => [figure, min, max]),
    [AREA.bottom, AREA.top],
  );
  let peers = 0;
  const styled = drawable.map((one) => {
    if (one.isOurs) return { ...one, colour: 'ours', mark: ROUND_MARK };
    const turn = peers++ % MARKS.length;
    return { ...one, colour: `peer${turn}`, mark: MARKS[turn] };
  });
  const missing = styled.filter(({ points: drawn }) => drawn.length === 0).length;
  const height = HEIGHT + Math.max(0, missing - 2) * LABEL_STEP;
  const ownLast = [...styled].sort((a, b) => Number(a.isOurs ?? false) - Number(b.isOurs ?? false));
  return frame({ title, subtitle, description, height }, [
    axes(x, y, { xTitle, yTitle, xTicks: xTicks ?? x.ticks }),
    ...ownLast.map((one) => drawLine(one, x, y)),
    ...labels(styled, x, y),
  ]);
}

const whole = (value) => value.toLocaleString('en-US');

const pointsOf = ({ points }) =>
  points
    .map(({ x, figure, min = figure, max = figure }) => ({ x, figure, min, max }))
    .filter((point) =>
      [point.x, point.figure].every((value) => Number.isFinite(value) && value > 0),
    );

function axes(x, y, { xTitle, yTitle, xTicks }) {
  const middle = ' class="note" text-anchor="middle"';
  const half = (AREA.top + AREA.bottom) / 2;
  return [
    ...y.ticks.map((value) => {
      return path('grid', `M${at(AREA.left, y.pixel(value))}H${AREA.right}`);
    }),
    ...y.ticks.map((value) => {
      const words = ' class="note" text-anchor="end"';
      return text(AREA.left - 7, y.pixel(value) + 4, whole(value), words);
    }),
    ...xTicks.map((value) => path('axis', `M${at(x.pixel(value), AREA.bottom)}v5`)),
    ...xTicks.map((value) => text(x.pixel(value), AREA.bottom + 19, whole(value), middle)),
    path('axis', `M${at(AREA.left, AREA.top)}V${AREA.bottom}H${AREA.right}`, ' fill="none"'),
    text((AREA.left + AREA.right) / 2, AREA.bottom + 38, xTitle, middle),
    text(22, half, yTitle, `${middle} transform="rotate(-90 22 ${round(half)})"`),
  ].join('\n');
}

function drawLine({ points, colour, mark, isOurs }, x, y) {
  if (points.length === 0) return '';
  const places = points.map((point) => [x.pixel(point.x), y.pixel(point.figure)]);
  const line = places.map(([across, down], i) => `${i === 0 ? 'M' : 'L'}${at(across, down)}`);
  return [
    path(`${colour} line`, line.join(''), ` stroke-width="${isOurs ? 2.5 : 1.5}"`),
    ...points.map(({ min, max }, i) => {
      return whisker(places[i][0], [y.pixel(min), y.pixel(max)], { isUpright: true });
    }),
    path(colour, places.map(([across, down]) => mark(across, down)).join(''), ' stroke="none"'),
  ]
    .filter((part) => part !== '')
    .join('\n');
}

/** One below the other, each as near to the end of its line as the others let it; the failed ones last. */
function labels(series, x, y) {
  const named = series.filter(({ points }) => points.length > 0);
  const wanted = named
    .map((one) => ({ one, last: one.points.at(-1) }))
    .map(({ one, last }) => ({ one, end: [x.pixel(last.x), y.pixel(last.figure)] }))
    .sort((a, b) => a.end[1] - b.end[1]);
  const downs = spread(
    wanted.map(({ end }) => end[1]),
    [AREA.top, AREA.bottom - 4],
  );
  const left = AREA.right + 24;
  const names = wanted.map(({ one, end }, i) => {
    const weight = one.isOurs ? ' font-weight="600"' : '';
    const lead = `M${at(end[0] + 9, end[1])}L${at(Math.max(end[0] + 9, AREA.right), end[1])}L${at(left - 4, downs[i])}`;
    return [
      path(`${one.colour} line`, lead, ' stroke-width="1" stroke-dasharray="1 3"'),
      path(one.colour, one.mark(left + 5, downs[i]), ' stroke="none"'),
      text(left + 16, downs[i] + 4, one.label, ` class="word"${weight}`),
    ].join('\n');
  });
  const missing = series.filter(({ points }) => points.length === 0);
  const failed = missing.map(({ label, error }, i) => {
    const down = AREA.bottom + 19 + i * LABEL_STEP;
    return text(left, down, `${label}: ${error ? 'failed' : 'no figure'}`, ' class="note"');
  });
  return [...names, ...failed];
}

/** Moves places (in order) apart to at least a step, within the room there is. */
function spread(places, [top, bottom]) {
  const down = [...places];
  for (let i = 0; i < down.length; i++) {
    down[i] = Math.max(down[i], i === 0 ? top : down[i - 1] + LABEL_STEP);
  }
  for (let i = down.length - 1; i >= 0; i--) {
    down[i] = Math.min(down[i], i === down.length - 1 ? bottom : down[i + 1] - LABEL_STEP);
  }
  return down;
}

module.exports = { linePlot };
