// The page for one model and workload: two charts, the list of lines, the data.

import { drawChart, highlight } from "./chart.js";
import { choose, el } from "./dom.js";
import { moment, quantity } from "./format.js";
import { grid } from "./grid.js";
import { t, term, words } from "./i18n.js";
import { swatch } from "./marks.js";
import { address } from "./source.js";
import { listOf, scaleKind } from "./state.js";

// data: {charts, table, query}; change(part) sets state and draws again; open(key, keys) shows the card.
export function drawPage(box, data, state, { change, open, source, meta }) {
  const legend = merged(data.charts);
  const count = state.more ? legend.length : Math.min(data.charts[0].shown, legend.length);
  const listed = legend.slice(0, count);
  const hidden = listOf(state.hidden);
  const numbers = new Map(listed.map(({ line }, index) => [line.id, index + 1]));
  const visible = new Set(listed.map(({ line }) => line.id).filter((id) => !hidden.has(id)));
  const boxes = data.charts.map(() => el("div", { class: "chart" }));
  const light = (id) => boxes.forEach((chartBox) => highlight(chartBox, id));
  const figures = data.charts.map((chart, index) => figure(chart, boxes[index]));
  box.replaceChildren(
    el("div", { class: "controls" }, source.embedded ? "" : axisChoices(data, meta.choices, change), scales(state, change)),
    el("div", { class: "charts" }, figures),
    key(data.charts[0]),
    lines(data, listed, { numbers, hidden, state, change, light, rest: legend.length - count }),
    tableOf(data, state, { change, open, source }),
  );
  const draw = () =>
    data.charts.forEach((chart, index) => {
      const shown = chart.series.filter(({ line }) => visible.has(line.id));
      const kind = (side) => scaleKind(state[side], shown.flatMap((series) => series.points.map((point) => point[side])));
      drawChart(boxes[index], chart, { shown, numbers, x: kind("x"), y: kind("y") }, {
        onopen: (point) => open(point.key, point.keys),
        onhover: light,
      });
    });
  draw();
  return draw;
}

// Lines of all charts in the first one's order, each with its series in every chart.
function merged(charts) {
  const found = new Map();
  charts.forEach((chart, index) => {
    for (const series of chart.series) {
      const entry = found.get(series.line.id) ?? { line: series.line, charts: [] };
      entry.charts[index] = series;
      found.set(series.line.id, entry);
    }
  });
  return [...found.values()];
}

function figure(chart, box) {
  const missing = chart.not_measured ? el("p", { class: "quiet" }, t("chart.not_measured", { n: chart.not_measured })) : "";
  return el("figure", {}, el("figcaption", {}, t("chart.title", { y: words(chart.y), x: words(chart.x) })), box, missing);
}

function scales(state, change) {
  const choice = (axis) =>
    el("fieldset", { class: "choice" }, el("legend", {}, t(`scale.${axis}`)), ["auto", "linear", "log"].map((kind) =>
      el("button", {
        type: "button", "aria-pressed": String(state[axis] === kind), "data-testid": `scale-${axis}-${kind}`,
        onclick: () => change({ [axis]: kind }),
      }, t(`scale.${kind}`))));
  return [choice("y"), choice("x")];
}

// Which metrics and which percentile; a report holds the usual ones only.
function axisChoices(data, choices, change) {
  const [first, second] = data.axes;
  const named = (options) => options.map((one) => [one.key, words(one)]);
  const choice = (name, options, value) => (options.length > 1 ? choose(`axis-${name}`, t(`axis.${name}`), named(options), value, (key) => change({ [name]: key })) : "");
  return [choice("metric", choices.y, first.y), choice("stat", choices.stat, first.x_stat || "p50"), choice("latency", choices.latency, second.x)];
}

function key(chart) {
  const points = chart.series.flatMap((series) => series.points);
  const has = (kind) => points.some((point) => point.badges.some((badge) => badge.kind === kind));
  const notes = [
    chart.series.length > 1 ? [el("span", { class: "envelope-key" }), t("chart.envelope", { n: chart.series.length })] : null,
    [t("chart.frontier")],
    [t("chart.concurrency")],
    chart.series.some(({ line }) => line.spec_decoding !== "none") ? [t("chart.dash")] : null,
    has("invalid") || has("simulated") ? [t("chart.hollow")] : null,
    has("stale") ? [t("chart.stale")] : null,
  ];
  return el("p", { class: "key quiet" }, notes.filter(Boolean).map((note) => el("span", {}, note)));
}

function lines(data, listed, { numbers, hidden, state, change, light, rest }) {
  const toggle = (id) => {
    const next = new Set(hidden);
    if (!next.delete(id)) next.add(id);
    change({ hidden: [...next].join(",") });
  };
  const columns = [
    { key: "shown", title: t("lines.shown"), cell: ({ line }) => checkbox(line, !hidden.has(line.id), toggle) },
    { key: "number", title: "#", number: true, tight: true, value: ({ line }) => -numbers.get(line.id), cell: ({ line }) => String(numbers.get(line.id)) },
    { key: "line", title: t("lines.line"), value: ({ line }) => line.label, cell: ({ line }) => el("span", { class: "line-name" }, swatch(line), term(line.label)) },
    ...bests(data.charts),
    { key: "points", title: t("lines.points"), number: true, tight: true, value: count, cell: (entry) => String(count(entry)) },
    { key: "origin", title: t("lines.origin"), value: origin, cell: origin },
  ];
  const table = grid(columns, listed, {
    sort: state.sort, testid: "lines", onsort: (sort) => change({ sort }),
    onhover: (entry) => light(entry && !hidden.has(entry.line.id) ? entry.line.id : null),
    rowClass: ({ line }) => (hidden.has(line.id) ? "off" : ""),
  });
  const first = data.charts[0].shown;
  const more = rest > 0
    ? el("button", { type: "button", "data-testid": "more", onclick: () => change({ more: "1" }) }, t("lines.more", { n: rest }))
    : state.more && listed.length > first
      ? el("button", { type: "button", "data-testid": "fewer", onclick: () => change({ more: "" }) }, t("lines.fewer", { n: first }))
      : "";
  return el("section", { "aria-labelledby": "lines-title" }, el("h2", { id: "lines-title" }, t("lines")), table, el("p", { class: "actions" }, more));
}

const count = (entry) => Math.max(...entry.charts.filter(Boolean).map((series) => series.points.length));
const origin = ({ line }) => t(line.simulated ? "badge.simulated" : line.measured ? "origin.measured" : "origin.imported");

// The best value of every metric that is an axis, once each.
function bests(charts) {
  const axes = new Map();
  charts.forEach((chart, index) => {
    for (const side of ["y", "x"]) {
      const id = `${chart[side].metric}_${chart[side].stat}`;
      if (!axes.has(id)) axes.set(id, { axis: chart[side], value: (entry) => entry.charts[index]?.[`best_${side}`] });
    }
  });
  return [...axes].map(([id, { axis, value }]) => ({
    key: `best_${id}`, title: t("lines.best", { metric: words(axis) }), number: true, value, cell: (entry) => quantity(value(entry), axis.unit),
  }));
}

function checkbox(line, checked, toggle) {
  const box = el("input", { type: "checkbox", "aria-label": t("lines.show", { line: term(line.label) }), onchange: () => toggle(line.id) });
  box.checked = checked;
  return box;
}

function tableOf(data, state, { change, open, source }) {
  const columns = data.table.columns.map((column, index) => ({
    key: column.key, title: words(column), number: column.kind === "number", tight: !column.metric,
    value: (row) => row.cells[index], cell: (row) => cellText(row.cells[index], column) + (row.unsupported.includes(column.key) ? "*" : ""),
  }));
  columns.push({ key: "verdict", title: t("data.verdict"), value: verdict, cell: verdictBadge });
  const table = grid(columns, data.table.rows, {
    sort: state.rows, testid: "data", onsort: (rows) => change({ rows }), onopen: (row) => open(row.key, [row.key]),
    rowClass: (row) => (row.valid ? "" : "not-valid"),
  });
  const csv = source.download(address("/api/table.csv", data.query));
  return el("section", { "aria-labelledby": "data-title" },
    el("h2", { id: "data-title" }, t("data")),
    el("p", { class: "actions" }, el("span", { class: "quiet" }, t("data.hint")), el("a", { href: csv, download: "prony.csv" }, t("data.csv"))),
    table,
    data.table.rows.some((row) => row.unsupported.length) ? el("p", { class: "quiet", "data-testid": "unsupported" }, t("details.unsupported.note")) : "",
  );
}

function cellText(value, column) {
  if (value === null || value === "") return "—";
  if (column.metric) return quantity(value, column.unit);
  return column.key === "measured_at" ? moment(value) : term(String(value));
}

const worst = (row) => row.badges.find((badge) => badge.kind === "invalid") ?? row.badges.find((badge) => badge.kind === "warn");
const verdict = (row) => worst(row)?.kind ?? "valid";

function verdictBadge(row) {
  const found = worst(row);
  return el("span", { class: `badge ${verdict(row)}`, title: found ? `${found.rule}: ${found.message}` : null }, t(`badge.${verdict(row)}`));
}
