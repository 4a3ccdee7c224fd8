// Writes test/lib/boundaries.txt, the boundaries of calendar windows by zdump and plain arithmetic:
//   node test/support/write-boundaries.mjs
//
// The first line has the version of the data. Each other line is an entry: zones whose offset is the same in some
// years, that offset with its changes, and by calendar the windows before, at and after each change (without any, at
// the beginning): the ordinal and the start of each, in the order of time. Seconds, UTC.
// It takes zdump and /usr/share/zoneinfo (Debian: libc-bin, tzdata).
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import localTime from './local-time.js';

const ZONES = '/usr/share/zoneinfo/tzdata.zi';
const FILE = new URL('../lib/boundaries.txt', import.meta.url);
const [FROM, TO] = [2024, 2030];

/** No place has it. */
const NO_ZONE = 'Factory';

/** Days that are rare: that a zone left out, that began at 01:00 or twice, or changes by half an hour. */
const SPECIAL = [
  ['Pacific/Apia', 2011],
  ['America/St_Johns', 2010],
  ['America/Sao_Paulo', 2018],
  ['America/Asuncion', 2023],
  ['America/Santiago', 2022],
  ['America/Havana', 2012],
  ['Africa/Cairo', 2014],
  ['Asia/Beirut', 2022],
  ['Asia/Tehran', 2021],
  ['Asia/Amman', 2021],
  ['Asia/Pyongyang', 2018],
  ['Antarctica/Troll', 2023],
];

const secondsOf = (year) => Date.UTC(year, 0) / 1000;
const run = (...command) => execFileSync(command[0], command.slice(1), { encoding: 'utf8' });

/**
 * The changes of some years, of one before and of one after. `zdump -v` prints a line for the second before a change,
 * and one for its own.
 */
function readZone(name, from, to) {
  const lines = run('zdump', '-v', '-c', `${from - 1},${to + 2}`, name).split('\n');
  const moments = lines.flatMap((line) => {
    const found = / {2}\w+ (\w+ +\d+ [\d:]+ \d+) UT = .* gmtoff=(-?\d+)$/.exec(line);
    return found === null ? [] : [[Date.parse(`${found[1]} UTC`) / 1000, Number(found[2])]];
  });
  const changes = moments.filter(([, offset], i) => i % 2 === 1 && offset !== moments[i - 1][1]);
  return { offset: moments[0]?.[1] ?? offsetOf(name, from), changes };
}

/** Of a zone that keeps it. */
function offsetOf(name, year) {
  const shown = run('env', `TZ=${name}`, 'date', '-d', `@${secondsOf(year)}`, '+%::z');
  const [, sign, ...parts] = /^([+-])(\d\d):(\d\d):(\d\d)\n$/.exec(shown);
  const [hours, minutes, seconds] = parts.map(Number);
  return (sign === '-' ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds);
}

/** The windows before, at and after some moments. */
function windowsAround(zone, calendar, moments) {
  const starts = new Map();
  for (const moment of moments) {
    const own = localTime.windowAt(zone, { calendar }, moment);
    for (const at of [own.start - 1, moment, own.end]) {
      const { ordinal, start } = localTime.windowAt(zone, { calendar }, at);
      starts.set(ordinal, start);
    }
  }
  return [...starts].sort(([a], [b]) => a - b).flat();
}

function entryOf(names, [from, to], zone) {
  const changes = zone.changes.map(([at]) => at);
  const during = changes.filter((at) => at >= secondsOf(from) && at < secondsOf(to + 1));
  const moments = during.length > 0 ? during : [secondsOf(from)];
  const around = (calendar) => [calendar, windowsAround(zone, calendar, moments)];
  const windows = Object.fromEntries(['hour', 'day', 'week', 'month', 'year'].map(around));
  return { names, from, to, ...zone, windows };
}

function allZones() {
  const lines = readFileSync(ZONES, 'utf8').split('\n');
  const names = lines.flatMap((line) => /^Z (\S+)/.exec(line)?.[1] ?? []);
  return names.filter((name) => name !== NO_ZONE).sort();
}

function entries() {
  const groups = new Map();
  for (const name of allZones()) {
    const zone = readZone(name, FROM, TO);
    const key = JSON.stringify(zone);
    if (!groups.has(key)) groups.set(key, { names: [], zone });
    groups.get(key).names.push(name);
  }
  return [
    ...[...groups.values()].map(({ names, zone }) => entryOf(names, [FROM, TO], zone)),
    ...SPECIAL.map(([name, year]) => entryOf([name], [year, year], readZone(name, year, year))),
  ];
}

const version = /^# version (\S+)/.exec(readFileSync(ZONES, 'utf8'))[1];
const lines = entries().map((entry) => JSON.stringify(entry));
writeFileSync(FILE, `tzdata ${version}\n${lines.join('\n')}\n`);
