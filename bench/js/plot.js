// What all plots share: the frame with a ground of its own, for light and dark pages, colours, whiskers.
'use strict';

const { at, escapeXml, round, text } = require('./svg');

const WIDTH = 860;

// Styles and not attributes, for the colours follow the page's scheme. Peers are muted and told apart
// by marks as well; "own" is rollgate used in another way.
const STYLE = `
.ground{fill:#fff;stroke:#d0d7de}.word{fill:#1f2328}.note{fill:#59636e}.grid{stroke:#d8dee4}.axis{stroke:#818b98}
.ours{fill:#1f6feb;stroke:#1f6feb}.own{fill:#8fb8f6;stroke:#8fb8f6}.peer{fill:#a8b0b9;stroke:#a8b0b9}.whisker{stroke:#3d444d}
.peer0{fill:#6e7781;stroke:#6e7781}.peer1{fill:#a0703c;stroke:#a0703c}.peer2{fill:#4f8a6b;stroke:#4f8a6b}
.peer3{fill:#8d5f99;stroke:#8d5f99}.peer4{fill:#8a8420;stroke:#8a8420}.peer5{fill:#b0606a;stroke:#b0606a}
.line{fill:none}.halo{paint-order:stroke;stroke:#fff;stroke-width:3px}
@media(prefers-color-scheme:dark){
.ground{fill:#0d1117;stroke:#3d444d}.word{fill:#f0f6fc}.note{fill:#9198a1}.grid{stroke:#2a313c}.axis{stroke:#656c76}
.ours{fill:#4c9aff;stroke:#4c9aff}.own{fill:#2f5b97;stroke:#2f5b97}.peer{fill:#656c76;stroke:#656c76}.whisker{stroke:#d1d7e0}
.peer0{fill:#9ea7b3;stroke:#9ea7b3}.peer1{fill:#c79a63;stroke:#c79a63}.peer2{fill:#71b08f;stroke:#71b08f}
.peer3{fill:#b48ac0;stroke:#b48ac0}.peer4{fill:#b9b24a;stroke:#b9b24a}.peer5{fill:#d48b94;stroke:#d48b94}
.line{fill:none}.halo{stroke:#0d1117}}
`.trim();

/** A whole picture: a title, a line below it, and what `parts` draw. */
function frame({ title, subtitle, description, height }, parts) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${round(height)}" width="${WIDTH}" height="${round(height)}" role="img" aria-labelledby="title desc" font-family="system-ui, -apple-system, 'Segoe UI', sans-serif" font-size="12">
<title id="title">${escapeXml(title)}</title>
<desc id="desc">${escapeXml(description)}</desc>
<style>${STYLE}</style>
<rect class="ground" x=".5" y=".5" width="${WIDTH - 1}" height="${round(height - 1)}" rx="6"/>
${text(16, 26, title, ' class="word" font-size="15" font-weight="600"')}
${text(16, 45, subtitle, ' class="note"')}
${parts.filter((part) => part !== '').join('\n')}
</svg>
`;
}

const path = (name, d, more = '') => `<path class="${name}" d="${d}"${more}/>`;

/** From the least to the greatest, with ends, along one axis; nothing where they meet. */
function whisker(across, [low, high], { isUpright = false } = {}) {
  if (!(Math.abs(high - low) >= 1)) return '';
  const d = isUpright
    ? `M${at(across, low)}V${round(high)}M${at(across - 3, low)}h6M${at(across - 3, high)}h6`
    : `M${at(low, across)}H${round(high)}M${at(low, across - 3)}v6M${at(high, across - 3)}v6`;
  return path('whisker', d, ' fill="none"');
}

/** A number in few characters. */
function short(value) {
  const units = [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ];
  const [unit, letter] = units.find(([size]) => value >= size) ?? [1, ''];
  return `${Number((value / unit).toPrecision(3))}${letter}`;
}

module.exports = { WIDTH, frame, path, short, whisker };
