// The names that arguments of a script choose.

/** `names`, or all if there are none; throws with `what` takes them if one is unknown. */
export function chosen(names, all, what) {
  if (names === undefined || names.length === 0) return all;
  const unknown = names.find((name) => !all.includes(name));
  if (unknown !== undefined) throw new Error(`${what} takes ${all.join(', ')}, not ${unknown}`);
  return names;
}
