// The language of the page.

import { STRINGS } from "./strings.js";

export const LANGUAGES = [["en", "English"], ["zh", "简体中文"]];

let current = "en";

export const language = () => current;

export function setLanguage(given) {
  current = given || ((navigator.language ?? "").startsWith("zh") ? "zh" : "en");
  if (!LANGUAGES.some(([code]) => code === current)) current = "en";
  document.documentElement.lang = current === "zh" ? "zh-Hans" : "en";
}

export function t(key, values = {}) {
  const text = STRINGS[key]?.[current];
  if (text === undefined) throw new Error(`no string '${key}' in '${current}'`);
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}

// Words inside names that the data brings: "prefill TP4 + decode TP8", "draft model", "8 concurrent".
export const term = (text) => text.split(/( · | \+ )/).map(translated).join("");

function translated(part) {
  const counted = /^(\d+) ([a-z]+)$/.exec(part);
  if (counted && known(counted[2])) return t(`term.${counted[2]}`, { n: counted[1] });
  const whole = part.replaceAll(" ", "_");
  if (known(whole)) return t(`term.${whole}`);
  return part.replace(/^[a-z]+(?= )/, (word) => (known(word) ? t(`term.${word}`) : word));
}

const known = (word) => Object.hasOwn(STRINGS, `term.${word}`);

// The words of an axis, metric or column, which carry both languages.
export const words = (thing) => thing[current];
