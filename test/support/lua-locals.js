// The locals of a Lua program, as far as the Redis scripts need it: no long brackets, no goto, no functions as arguments.
'use strict';

const WORD = /--.*|'(?:\\.|[^'\\])*'|[A-Za-z_]\w*|\d[\w.]*|\.+|[=~<>]=|\S/g;
const KEYWORDS =
  /^(and|break|do|else|elseif|end|false|for|function|if|in|local|nil|not|or|repeat|return|then|true|until|while)$/;
const isName = (word) => /^[A-Za-z_]/.test(word) && !KEYWORDS.test(word);
/** A name behind one of these begins a statement. */
const endsStatement = (word) =>
  isName(word) || /^([\d')\]}]|(break|do|else|end|false|nil|repeat|then|true)$)/.test(word);

/** The words of a line without its comment. */
const wordsIn = (line) =>
  [...line.matchAll(WORD)].flatMap(([text]) => (text.startsWith('--') ? [] : text));

/** The places in `words`, which are { text, part }, where a statement assigns to a name. */
function assignedIn(words) {
  const assigned = new Set();
  const behindBrackets = (i) => {
    for (let depth = 0; ; i++) {
      if (words[i].text === '[') depth++;
      if (words[i].text === ']' && --depth === 0) return i + 1;
    }
  };
  let depth = 0; // of brackets, inside of which no statement begins
  for (let i = 0; i < words.length; i++) {
    if (/^[([{]$/.test(words[i].text)) depth++;
    if (/^[)\]}]$/.test(words[i].text)) depth--;
    const isStart = depth === 0 && (i === 0 || endsStatement(words[i - 1].text));
    const targets = [];
    for (let next = i; isStart && isName(words[next]?.text ?? ''); next++) {
      const target = next++;
      while (/^[.[]$/.test(words[next]?.text)) {
        next = words[next].text === '.' ? next + 2 : behindBrackets(next);
      }
      if (next === target + 1) targets.push(target);
      if (words[next]?.text === '=') for (const place of targets) assigned.add(place);
      if (words[next]?.text !== ',') break;
    }
  }
  return assigned;
}

/** Each use of a local: { name, part, home, isSet }, where `home` is the part that declares it. */
function usesIn(words) {
  const assigned = assignedIn(words);
  const scopes = [new Map()];
  const uses = [];
  let ofLoop; // the names of a loop, whose scope begins with 'do'
  const textAt = (i) => words[i]?.text;
  const declareFrom = (i, scope) => {
    scope.set(textAt(i), words[i].part);
    return textAt(i + 1) === ',' ? declareFrom(i + 2, scope) : i;
  };
  const use = (i) => {
    const { text: name, part } = words[i];
    const scope = scopes.findLast((some) => some.has(name));
    if (scope) uses.push({ name, part, home: scope.get(name), isSet: assigned.has(i) });
  };
  const inTable = [];
  for (let i = 0; i < words.length; i++) {
    const word = textAt(i);
    if (/^[([{]$/.test(word)) inTable.push(word === '{');
    else if (/^[)\]}]$/.test(word)) inTable.pop();
    else if (word === 'local' && textAt(i + 1) !== 'function')
      i = declareFrom(i + 1, scopes.at(-1));
    else if (word === 'for') {
      ofLoop = new Map();
      i = declareFrom(i + 1, ofLoop);
    } else if (word === 'function') {
      if (textAt(i - 1) === 'local') declareFrom(++i, scopes.at(-1));
      else if (textAt(i + 1) !== '(') use(++i); // of function table.name()
      while (textAt(i) !== '(') i++;
      scopes.push(new Map());
      if (textAt(i + 1) !== ')') i = declareFrom(i + 1, scopes.at(-1));
      else i++;
      i++; // behind the parameters
    } else if (word === 'do') {
      scopes.push(ofLoop ?? new Map());
      ofLoop = undefined;
    } else if (word === 'then' || word === 'repeat') scopes.push(new Map());
    else if (word === 'else') scopes.splice(-1, 1, new Map());
    else if (/^(elseif|end|until)$/.test(word)) scopes.pop();
    else if (isName(word) && textAt(i - 1) !== '.') {
      const isField = inTable.at(-1) && textAt(i + 1) === '=';
      if (!isField) use(i);
    }
  }
  return uses;
}

module.exports = { usesIn, wordsIn };
