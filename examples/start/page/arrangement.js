// Places the requests of a lane: each exactly at its time, stacked where they would overlap. Allowed requests are above
// the axis, refused ones below it. Actions with an end are bars, one row for each slot.
'use strict';

const LARGEST = 13;
const SMALLEST = 2;
const SIZE_STEP = 0.5;
const THICKEST_BAR = 10;
/** How much of the height bars take at most. */
const SHARE_OF_BARS = 0.6;

/** The row of each span, counted from the axis: the first that is free at its start. */
function rowsOf(spans) {
  const ends = [];
  return spans.map(([start, end]) => {
    let row = ends.findIndex((taken) => taken <= start);
    if (row === -1) row = ends.length;
    ends[row] = end;
    return row;
  });
}

/** The rows of a lane's requests, and how many rows there are on each side of the axis. */
function arrange(requests, xOf, size) {
  const rows = new Map();
  const [above, below] = [true, false].map((allowed) => {
    const side = requests.filter(({ decision }) => decision.allowed === allowed);
    const sideRows = rowsOf(side.map(({ at }) => [xOf(at), xOf(at) + size]));
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

/**
 * The places of actions, which are bars, and of refusals. Each process has its own `max` slots.
 *
 * @returns {{ size: number, barSize: number, axis: number, rows: Map<object, number> }} as of placeLanes
 */
function placeSlots(requests, { xOf, heightForRequests: height }, { max, slots }) {
  const barSize = Math.min(THICKEST_BAR, (SHARE_OF_BARS * height) / slots);
  const refused = requests.filter(({ decision }) => !decision.allowed);
  const { size, lanes } = placeLanes([refused], xOf, height - slots * barSize);
  const [rows] = lanes;
  for (let client = 0; client * max < slots; client++) {
    const actions = requests.filter((each) => each.client === client && each.decision.allowed);
    const ownRows = rowsOf(actions.map(({ at, end }) => [at, end]));
    for (const [i, action] of actions.entries()) rows.set(action, client * max + ownRows[i]);
  }
  return { size, barSize, axis: slots * barSize, rows };
}

module.exports = { placeLanes, placeSlots };
