// The card of one point: everything measured, whether it is valid, and where it comes from.

import { el, scroller } from "./dom.js";
import { moment, quantity, range } from "./format.js";
import { t, term, words } from "./i18n.js";
import { spread } from "./spread.js";

const STATS = ["p50", "p90", "p95", "p99", "p999"];
// details: the API's answer for one row; keys: all repeats of the point; shown: [{axis, value, interval, point}] as the
// charts draw them; onrepeat(key) shows another repeat.
export function showDetails(dialog, details, { keys, shown, metrics, onrepeat }) {
  const { row } = details;
  dialog.replaceChildren(
    el("div", { class: "dialog-head" },
      el("h2", { id: "details-title" }, term(details.label)),
      el("button", { type: "button", class: "close", onclick: () => dialog.close() }, t("details.close")),
    ),
    el("p", { "data-testid": "values" }, shown.map(({ axis, value, interval, point }) =>
      el("span", { class: "value" }, `${words(axis)}: `, el("b", {}, quantity(value, axis.unit)), spread(point, axis, interval)))),
    keys.length > 1 ? repeats(keys, row.key, onrepeat) : "",
    versions(details),
    badges(details.badges),
    verdicts(row.verdicts ?? []),
    el("h3", {}, t("details.measurements")),
    measurements(row.measurements, metrics),
    el("h3", {}, t("details.provenance")),
    provenance(details),
    el("p", { class: "actions" },
      details.run_url ? el("a", { href: details.run_url, rel: "noopener noreferrer", target: "_blank" }, t("details.run")) : "",
      copyButton(() => location.href, t("details.copy_link")),
    ),
  );
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function repeats(keys, current, onrepeat) {
  const buttons = keys.map((key, index) =>
    el("button", { type: "button", "aria-pressed": String(key === current), onclick: () => onrepeat(key) }, t("details.repeat", { n: index + 1 })),
  );
  return el("p", { class: "actions" }, t("details.repeats", { n: keys.length }), buttons);
}

const badges = (marks) =>
  el("p", { class: "badges" }, marks.filter((badge) => !badge.rule).map((badge) => el("span", { class: `badge ${badge.kind}` }, t(`badge.${badge.kind}`))));

function verdicts(found) {
  const told = found.filter((verdict) => verdict.severity !== "info");
  if (!told.length) return el("p", { class: "quiet" }, t("details.no_verdicts"));
  const items = told.map((verdict) => {
    const kind = verdict.severity === "invalid" ? "invalid" : "warn";
    return el("li", {},
      el("span", { class: `badge ${kind}` }, `${t(`badge.${kind}`)} · ${verdict.rule}`), " ", verdict.message,
      verdict.evidence ? el("div", { class: "quiet" }, verdict.evidence) : "",
      verdict.fix ? el("div", { class: "quiet" }, t("details.fix", { fix: verdict.fix })) : "",
    );
  });
  return el("ul", { class: "verdicts", "aria-label": t("details.verdicts"), "data-testid": "verdicts" }, items);
}

function measurements(found, metrics) {
  const by = new Map();
  for (const one of found) by.set(one.metric, { ...by.get(one.metric), [one.stat]: one });
  const rows = metrics.filter((metric) => by.has(metric.key)).map((metric) => measured(metric, by.get(metric.key)));
  const heads = [t("details.metric"), t("details.value"), t("details.ci95"), ...STATS.map((stat) => stat.replace("p999", "p99.9")), t("details.n")];
  const head = el("tr", {}, heads.map((text, index) => el("th", { scope: "col", class: index ? "number" : null }, text)));
  const unsupported = found.some((one) => one.supported === false);
  return el("div", {},
    scroller(el("table", { "data-testid": "measurements" }, el("thead", {}, head), el("tbody", {}, rows))),
    unsupported ? el("p", { class: "quiet" }, t("details.unsupported.note")) : "",
  );
}

function measured(metric, stats) {
  const main = stats.value ?? stats.mean;
  const n = main?.n ?? Object.values(stats).find((one) => one.n)?.n;
  const cell = (one) => (one ? quantity(one.value, metric.unit) : "—");
  const percentile = (one) => el("td", { class: "number", title: one?.supported === false ? t("details.unsupported") : null },
    cell(one), one?.supported === false ? "*" : "", one?.ci95 ? el("div", { class: "quiet" }, range(one.ci95, metric.unit)) : "");
  return el("tr", {},
    el("th", { scope: "row", title: words({ en: metric.explain_en, zh: metric.explain_zh }) }, words(metric)),
    el("td", { class: "number" }, cell(main)),
    el("td", { class: "number" }, main?.ci95 ? range(main.ci95, metric.unit) : "—"),
    STATS.map((stat) => percentile(stats[stat])),
    el("td", { class: "number" }, n === undefined ? "—" : String(n)),
  );
}

function provenance({ row, facts }) {
  return el("div", {},
    el("dl", { "data-testid": "provenance" }, facts.map((fact) => [el("dt", {}, words(fact)), el("dd", {}, fact.values.map((value) => el("div", {}, told(fact, value, row))))])),
    row.provenance ? "" : el("p", { class: "quiet" }, t("details.no_provenance")),
  );
}

function told(fact, value, row) {
  if (fact.key === "gpus_used" && row.hardware === "cpu") return t("details.cpu", { n: value });
  if (fact.kind === "command") return [el("code", { class: "command" }, value), " ", copyButton(() => value)];
  if (fact.kind === "digest") return [el("code", { title: value }, `${value.slice(0, value.startsWith("sha256:") ? 19 : 12)}…`), " ", copyButton(() => value)];
  if (fact.kind === "moment") return moment(value);
  return fact.kind === "terms" ? term(value) : value;
}

// A row that came again with other content: what was known before.
function versions({ versions: all = [], main }) {
  if (!all.length) return "";
  const shown = all.find((one) => one.shown);
  const others = all.filter((one) => one !== shown).map((one) => `${quantity(one.value, main.unit)} (${moment(one.stored_at)})`);
  const text = t("details.versions", { n: shown?.version ?? "—", total: all.length, metric: words(main), others: others.join("; ") });
  return el("p", { "data-testid": "versions" }, text);
}

function copyButton(content, label = t("details.copy")) {
  const button = el("button", { type: "button", class: "copy" }, label);
  button.addEventListener("click", async () => {
    if (await copy(content(), button)) button.textContent = t("details.copied");
  });
  return button;
}

// The clipboard API is absent on plain http addresses other than loopback; selecting a field works everywhere.
async function copy(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = el("textarea", { class: "offscreen", readonly: true });
    field.value = text;
    near.after(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}
