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

// The words of an axis, metric or column, which carry both languages.
export const words = (thing) => thing[current];
