// What is chosen, kept in the address after '#', so that a link holds the whole view.

const START = { model: "", workload: "", lang: "", x: "auto", y: "auto", metric: "", stat: "", latency: "", more: "", hidden: "", sort: "", rows: "", point: "" };

export function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = { ...START };
  for (const key of Object.keys(START)) if (given.has(key)) state[key] = given.get(key);
  for (const key of ["x", "y"]) if (!["linear", "log"].includes(state[key])) state[key] = "auto";
  return state;
}

export function writeState(state) {
  const chosen = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) if (value !== START[key]) chosen.set(key, value);
  const text = chosen.toString();
  if (text !== location.hash.slice(1)) history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

// Values that span more than a factor of 40 are read better on a log axis; a choice made by hand wins.
export function scaleKind(chosen, values) {
  if (chosen !== "auto") return chosen;
  const positive = values.filter((value) => value > 0);
  return positive.length && Math.max(...positive) / Math.min(...positive) > 40 ? "log" : "linear";
}

export const listOf = (text) => new Set(text ? text.split(",") : []);

// A sort is written 'column' (descending) or '-column' (ascending): numbers are read best first.
export function parseSort(text) {
  return { key: text.replace(/^-/, ""), ascending: text.startsWith("-") };
}
