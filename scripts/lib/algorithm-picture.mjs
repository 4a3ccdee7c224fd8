// Draws the decisions of an algorithm as an SVG for light and dark pages.
import { END, LIMIT, PARTS } from './algorithm-runs.mjs';
import { at, round, text } from './svg.js';

const WIDTH = 760;
const HEIGHT = 310;
const PLOT = { left: 46, right: WIDTH - 14, top: 106, bottom: 266 };
const HIGHEST = 20;

/** Each has enough contrast to white and to black. */
const COLOUR = { text: '#777', allowed: '#2f7de1', refused: '#d8435b', used: '#c27803' };

const x = (time) => PLOT.left + ((PLOT.right - PLOT.left) * time) / END;
const y = (count) => PLOT.bottom - ((PLOT.bottom - PLOT.top) * count) / HIGHEST;

/** A step line of the values of `key` in `uses`. */
function steps(uses, key) {
  let path = `M${at(x(uses[0].time), y(uses[0][key]))}`;
  let last = uses[0][key];
  for (const use of uses) {
    if (use[key] !== last) path += `H${round(x(use.time))}V${round(y(use[key]))}`;
    last = use[key];
  }
  return `${path}H${round(x(END))}`;
}

/** The height of an allowed attempt is how many were allowed within the last interval. */
function dots(attempts, uses) {
  const insideAt = new Map(uses.map(({ time, inside }) => [time, inside]));
  const allowed = attempts.filter((attempt) => attempt.allowed);
  return allowed.map(({ time }) => `M${at(x(time), y(insideAt.get(time)))}h0`).join('');
}

/** Refused attempts side by side, in the lowest row with room for one more. */
function crosses(attempts) {
  const ends = [];
  const refused = attempts.filter(({ allowed }) => !allowed);
  return refused.map(({ time }) => {
    const left = x(time) - 2;
    const free = ends.findIndex((end) => end <= left);
    const row = free < 0 ? ends.length : free;
    ends[row] = left + 6;
    return `M${at(left, PLOT.top - 9 - 6 * row)}l4 4m0-4l-4 4`;
  });
}

function axes() {
  const middle = ' text-anchor="middle"';
  const end = ' text-anchor="end"';
  const lines = [];
  for (let time = 0; time <= END; time += 10_000) {
    lines.push(text(x(time), PLOT.bottom + 15, `${time / 1000}`, middle));
  }
  for (const count of [0, LIMIT.maxInInterval, HIGHEST]) {
    lines.push(text(PLOT.left - 6, y(count) + 4, `${count}`, end));
  }
  lines.push(text((PLOT.left + PLOT.right) / 2, HEIGHT - 6, 'time in seconds', middle));
  lines.push(text(12, y(15), 'actions', `${middle} transform="rotate(-90 12 ${round(y(15))})"`));
  for (const { name, times } of PARTS) {
    lines.push(text(x((times[0] + times.at(-1)) / 2), PLOT.top - 45, name, middle));
  }
  return lines.join('\n');
}

function windowEdges() {
  const paths = [];
  for (let time = 0; time <= END; time += LIMIT.interval) {
    paths.push(`M${at(x(time), PLOT.top - 36)}V${PLOT.bottom}`);
  }
  return `<path d="${paths.join('')}" stroke="${COLOUR.text}" stroke-opacity=".45"/>\n`;
}

function legend() {
  const down = 38;
  const stroke = (colour, d, more = '') => `<path d="${d}" stroke="${colour}"${more}/>`;
  return [
    stroke(COLOUR.allowed, `M${at(50, down - 4)}h0`, ' stroke-width="5" stroke-linecap="round"'),
    text(58, down, 'allowed'),
    stroke(COLOUR.refused, `M${at(114, down - 6)}l4 4m0-4l-4 4`),
    text(124, down, 'refused'),
    `<path d="M182 ${down - 9}h16v10h-16z" fill="${COLOUR.allowed}" fill-opacity=".25"/>`,
    text(204, down, 'allowed in the last 10 s'),
    stroke(COLOUR.used, `M${at(352, down - 4)}h16`, ' stroke-width="2"'),
    text(374, down, 'used, as the algorithm counts'),
    stroke(COLOUR.text, `M${at(568, down - 4)}h16`, ' stroke-dasharray="4 3"'),
    text(590, down, 'limit'),
  ].join('\n');
}

/** `hasEdges`: whether the algorithm has windows that begin and end. */
export function picture(algorithm, { attempts, uses, most }, { hasEdges }) {
  const allowed = attempts.filter((attempt) => attempt.allowed).length;
  const result = `${allowed} of ${attempts.length} attempts allowed, at most ${most} within any 10 s`;
  const inside = steps(uses, 'inside');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title desc" font-family="system-ui, sans-serif" font-size="12" fill="none">
<title id="title">${algorithm}, at most 10 actions in 10 s</title>
<desc id="desc">A trickle of attempts, a burst around second 20, hammering from second 24 to 34, silence, and a burst at second 46: ${result}.</desc>
<g fill="${COLOUR.text}">
${text(PLOT.left, 18, `${algorithm}, 10 in 10 s: ${result}`, ' font-size="13" font-weight="600"')}
${axes()}
</g>
${hasEdges ? windowEdges() : ''}<path d="M${at(PLOT.left, PLOT.top - 36)}V${PLOT.bottom}H${PLOT.right}" stroke="${COLOUR.text}"/>
<path d="${inside}V${PLOT.bottom}H${PLOT.left}z" fill="${COLOUR.allowed}" fill-opacity=".25"/>
<path d="M${at(PLOT.left, y(LIMIT.maxInInterval))}H${PLOT.right}" stroke="${COLOUR.text}" stroke-dasharray="4 3"/>
<path d="${steps(uses, 'used')}" stroke="${COLOUR.used}" stroke-width="2"/>
<path d="${dots(attempts, uses)}" stroke="${COLOUR.allowed}" stroke-width="5" stroke-linecap="round"/>
<path d="${crosses(attempts).join('')}" stroke="${COLOUR.refused}"/>
<g fill="${COLOUR.text}">
${legend()}
</g>
</svg>
`;
}
