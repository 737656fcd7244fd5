// Numbers for people: three significant digits, thin-space thousands, the unit always shown. Twin of prony.base.units.

const THIN_SPACE = "\u2009";
export const NOT_MEASURED = "—";

export function significant(value, digits = 3) {
  if (value === null || value === undefined) return NOT_MEASURED;
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  if (Math.abs(value) >= 1e15 || Math.abs(value) < 1e-9) return value.toExponential(digits - 1);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  const [whole, fraction] = Math.abs(value).toFixed(Math.min(decimals, 20)).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);
  return (value < 0 ? "−" : "") + grouped + (fraction ? `.${fraction}` : "");
}

const COUNTS = new Set(["requests", "tokens"]);

export function quantity(value, unit) {
  if (value === null || value === undefined) return NOT_MEASURED;
  if (unit === "s") return duration(value);
  const digits = COUNTS.has(unit) && Number.isInteger(value) ? 15 : 3;
  const number = digits === 15 ? integer(value) : significant(value, digits);
  return unit && unit !== "1" ? `${number} ${unit}` : number;
}

export const integer = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);

function duration(seconds) {
  const size = Math.abs(seconds);
  if (size !== 0 && size < 1e-3) return `${significant(seconds * 1e6)} µs`;
  if (size !== 0 && size < 1) return `${significant(seconds * 1e3)} ms`;
  return `${significant(seconds)} s`;
}

// Two ends with the unit once where it is the same for both: 297 – 316 tok/s/GPU, 980 ms – 1.02 s.
export function range([low, high], unit) {
  const [first, last] = [quantity(low, unit), quantity(high, unit)];
  const shared = last.slice(last.lastIndexOf(" "));
  return `${shared.trim() && first.endsWith(shared) ? first.slice(0, -shared.length) : first} – ${last}`;
}

export const moment = (text) => text.replace("T", " ").replace("Z", " UTC").replace(" 00:00:00 UTC", "");
