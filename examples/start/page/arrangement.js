// Places the requests of a lane: each exactly at its time, stacked where they would overlap. Allowed requests are above
// the axis, refused ones below it.
'use strict';

const LARGEST = 13;
const SMALLEST = 2;
const SIZE_STEP = 0.5;

/** The row of each request, counted from the axis: the first in which there is room for a symbol of this size. */
function rowsOf(positions, size) {
  const ends = [];
  return positions.map((x) => {
    let row = ends.findIndex((end) => end <= x);
    if (row === -1) row = ends.length;
    ends[row] = x + size;
    return row;
  });
}

/** The rows of a lane's requests, and how many rows there are on each side of the axis. */
function arrange(requests, xOf, size) {
  const rows = new Map();
  const [above, below] = [true, false].map((allowed) => {
    const side = requests.filter(({ decision }) => decision.allowed === allowed);
    const sideRows = rowsOf(
      side.map(({ at }) => xOf(at)),
      size,
    );
    for (const [i, request] of side.entries()) rows.set(request, sideRows[i]);
    return Math.max(0, ...sideRows.map((row) => row + 1));
  });
  return { rows, above, below };
}

/**
 * The largest size with which all lanes fit into this height, the same for all, so that they can be compared.
 *
 * @returns {{ size: number, axis: number, lanes: Map<object, number>[] }} `axis` is the height above the axis; the maps
 *   have the row of each request
 */
function placeLanes(lanes, xOf, height) {
  for (let size = LARGEST; ; size -= SIZE_STEP) {
    const arranged = lanes.map((requests) => arrange(requests, xOf, size));
    const above = Math.max(1, ...arranged.map((lane) => lane.above)) * size;
    const below = Math.max(1, ...arranged.map((lane) => lane.below)) * size;
    if (above + below <= height || size === SMALLEST) {
      const axis = above + Math.max(0, height - above - below) / 2;
      return { size, axis, lanes: arranged.map(({ rows }) => rows) };
    }
  }
}

module.exports = { placeLanes };
