// Pieces of SVG that the plots share: rounded numbers, and text with its characters escaped.
'use strict';

const ESCAPED = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const escapeXml = (words) => String(words).replace(/[&<>"']/g, (character) => ESCAPED[character]);

/** To a tenth of a pixel, so that a picture is the same text wherever it is drawn. */
const round = (number) => String(Math.round(number * 10) / 10);

const at = (across, down) => `${round(across)} ${round(down)}`;

function text(across, down, words, more = '') {
  return `<text x="${round(across)}" y="${round(down)}"${more}>${escapeXml(words)}</text>`;
}

module.exports = { at, escapeXml, round, text };
