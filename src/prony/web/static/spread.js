// How far a point's value may be off, in words.

import { range } from "./format.js";
import { t } from "./i18n.js";

export function spread(point, axis, interval) {
  if (!interval) return "";
  const kind = point.interval === "range" ? t("details.range", { n: point.n }) : t("details.ci95");
  return ` (${range(interval, axis.unit)}, ${kind})`;
}
