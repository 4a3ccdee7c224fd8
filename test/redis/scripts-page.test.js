// docs/design/scripts.md lists the locals that parts of the Redis scripts share: each as the sources use it, and no other.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { usesIn, wordsIn } = require('../support/lua-locals');

const ROOT = path.join(__dirname, '../..');
const FOLDER = path.join(ROOT, 'src/redis/scripts');
/** That of slots is whole: it shares no locals. */
const FILES = fs.readdirSync(FOLDER).filter((file) => file !== 'slots.lua');
const OF_ALGORITHMS = ALGORITHMS.map((name) => `${name.replaceAll('-', '_')}.lua`);
const OTHERS = FILES.filter((file) => !OF_ALGORITHMS.includes(file));
const LINES = new Map(
  FILES.map((file) => [file, fs.readFileSync(path.join(FOLDER, file), 'utf8').split('\n')]),
);
const markOf = (line) => /^ *-- (PART|PLACE|INCLUDE): (.*)$/.exec(line)?.slice(1) ?? [];
const marksIn = (file, kind) =>
  LINES.get(file).flatMap((line) => (markOf(line)[0] === kind ? markOf(line)[1] : []));

/**
 * The words of a file by place: before its first PART, those of FIRST. Included files are in place, and `parts` at
 * their places. The part of a word is its file, or in an algorithm's file the place, too.
 */
function placesOf(file, parts = {}) {
  let place = 'FIRST';
  const places = { [place]: [] };
  for (const line of LINES.get(file)) {
    const [kind, name] = markOf(line);
    const part = OF_ALGORITHMS.includes(file) ? `${file} ${place}` : file;
    if (kind === 'PART') {
      place = name;
      places[place] = [];
    } else if (kind === 'INCLUDE') places[place].push(...placesOf(`${name}.lua`, parts).FIRST);
    else if (kind === 'PLACE') places[place].push(...(parts[name] ?? []));
    else places[place].push(...wordsIn(line).map((text) => ({ text, part })));
  }
  return places;
}

const PAGE = fs.readFileSync(path.join(ROOT, 'docs/design/scripts.md'), 'utf8');
/** What is in backquotes, word by word. */
const namesIn = (text) => [...text.matchAll(/`([^`]+)`/g)].flatMap(([, names]) => names.split(' '));
/** The names of functions that frame.lua makes locals. */
const FUNCTIONS = namesIn(/^Every part may use (`.*?`)/m.exec(PAGE)[1]).sort();

const isListed = (name) => !FUNCTIONS.includes(name) && !/^[A-Z][A-Z_]*$/.test(name);
/** The uses of locals that another part declares, in all scripts. */
const SHARED = OF_ALGORITHMS.map((file) => placesOf('frame.lua', placesOf(file)).FIRST)
  .flatMap(usesIn)
  .filter(({ name, part, home }) => part !== home && isListed(name));

const fileOf = (part) => part.split(' ')[0];
const placeOf = (part) => part.slice(fileOf(part).length + 1);
const isOfAlgorithm = (part) => OF_ALGORITHMS.includes(fileOf(part));
const sorted = (names) => [...new Set(names)].sort();
const namesOf = (uses, isWanted) => sorted(uses.filter(isWanted).map(({ name }) => name));
const filesWith = (kind, name) =>
  sorted(FILES.filter((file) => marksIn(file, kind).includes(name)));
const PLACES = FILES.flatMap((file) => marksIn(file, 'PLACE'));
const HOSTS = FILES.filter((file) => marksIn(file, 'PLACE').length > 0);

/** The table below a heading: for each name in the first column, the names in the others. */
function tableBelow(heading) {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  const rows = [...section.matchAll(/^\| `(.+?)` \| (.*) \|$/gm)];
  return rows.map(([, name, cells]) => [
    name,
    ...cells
      .split(' | ')
      .map((cell) => (cell === 'all' ? sorted(OF_ALGORITHMS) : namesIn(cell).sort())),
  ]);
}

test('every part may use the functions that the page names', () => {
  const declared = LINES.get('frame.lua').flatMap(
    (line) => /^local (.*?) = (math|redis|string|struct)\./.exec(line)?.[1].split(', ') ?? [],
  );
  expect(FUNCTIONS).toEqual(declared.sort());
});

test('files: who includes them, and which locals of others they read and set', () => {
  const rows = OTHERS.map((file) => [
    file,
    filesWith('INCLUDE', file.replace('.lua', '')),
    namesOf(SHARED, ({ part, isSet }) => part === file && !isSet),
    namesOf(SHARED, ({ part, home, isSet }) => home === file || (isSet && part === file)),
  ]);
  expect(tableBelow('Files').sort()).toEqual(rows.sort());
});

test("places: where they are, and which locals of other files the algorithms' parts there read and set", () => {
  const rows = PLACES.map((place) => {
    const isHere = (part) => isOfAlgorithm(part) && placeOf(part) === place;
    const isOutside = ({ part, home }) => isHere(part) && fileOf(home) !== fileOf(part);
    return [
      place,
      filesWith('PLACE', place),
      place === 'FIRST' ? sorted(OF_ALGORITHMS) : filesWith('PART', place),
      namesOf(SHARED, (use) => !use.isSet && isOutside(use)),
      namesOf(
        SHARED,
        (use) => (use.isSet && isOutside(use)) || (HOSTS.includes(use.part) && isHere(use.home)),
      ),
    ];
  });
  expect(tableBelow('Places').sort()).toEqual(rows.sort());
  expect(sorted(OF_ALGORITHMS.flatMap((file) => marksIn(file, 'PART')))).toEqual(
    sorted(PLACES).filter((place) => place !== 'FIRST'),
  );
});

test('algorithms: which locals their parts and files share', () => {
  const rows = OF_ALGORITHMS.map((file) => [
    file,
    namesOf(SHARED, ({ part, home }) => fileOf(home) === file && !HOSTS.includes(part)),
  ]);
  expect(tableBelow('Algorithms').sort()).toEqual(rows.sort());
});
