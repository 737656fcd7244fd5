// The page's start: read what is asked, get it, draw it, and draw again when it changes.

import { showDetails } from "./details.js";
import { choose, el } from "./dom.js";
import { moment } from "./format.js";
import { LANGUAGES, language, setLanguage, t } from "./i18n.js";
import { drawPage } from "./page.js";
import { address, openSource } from "./source.js";
import { readState, writeState } from "./state.js";

const [top, notice, view, dialog] = ["top", "notice", "view", "details"].map((id) => document.getElementById(id));
const source = openSource();
let state = readState();
let meta = null;
let data = null;
let turn = 0; // counts updates, so that an answer that comes late is not drawn over a later choice
let redrawCharts = () => {};

start();

async function start() {
  setLanguage(state.lang);
  setTheme(storedTheme());
  window.addEventListener("hashchange", () => update(readState()));
  new ResizeObserver(afterResize()).observe(view);
  dialog.addEventListener("close", () => change({ point: "" }, false));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  await load();
}

async function load() {
  await attempt(async () => {
    meta = await source.get("/api/meta");
    await update(state);
  });
}

async function update(next) {
  state = next;
  if (!meta) return load();
  turn += 1;
  const mine = turn;
  setLanguage(state.lang);
  document.title = meta.title;
  drawTop();
  if (!meta.rows) return drawEmpty();
  await attempt(async () => {
    const [query, axes] = [chosen(), chosenAxes()];
    const known = data && JSON.stringify([data.query, data.axes]) === JSON.stringify([query, axes]);
    const found = known ? data : await fetchData(query, axes);
    if (mine !== turn) return;
    data = found;
    redraw();
    if (state.point && !dialog.open) await open(state.point, keysOf(state.point));
  });
}

// Sets part of the state; the old picture stays until the new one is there.
function change(part, draw = true) {
  state = { ...state, ...part };
  writeState(state);
  if (draw) update(state);
}

function chosen() {
  const model = meta.models.find((one) => one.model === state.model) ?? meta.models[0];
  const workload = model.workloads.find((one) => one.id === state.workload) ?? model.workloads[0];
  const asked = [state.model, state.workload].filter(Boolean);
  const given = (state.model && state.model !== model.model) || (state.workload && state.workload !== workload.id);
  tell(given ? [t("fault.choice", { asked: asked.join(", "), shown: `${model.model}, ${workload.label}` })] : []);
  return { model: model.model, workload: workload.id };
}

// The axes of both charts: the usual ones unless the link says others. A report holds the usual ones only.
function chosenAxes() {
  const asked = (options, key) => (!source.embedded && options.some((one) => one.key === key) ? key : "");
  const { y, stat, latency } = meta.choices;
  return meta.charts.map((usual, index) => ({
    x: (index && asked(latency, state.latency)) || usual.x,
    y: asked(y, state.metric) || usual.y,
    x_stat: asked(stat, state.stat),
  }));
}

async function fetchData(query, axes) {
  const charts = axes.map((pair) => source.get(address("/api/charts", { ...query, ...pair })));
  const table = source.get(address("/api/table", query));
  return { query, axes, charts: await Promise.all(charts), table: await table };
}

function redraw() {
  const focus = focusMark();
  const scrolled = [...view.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
  redrawCharts = drawPage(view, data, state, { change, open, source, meta });
  [...view.querySelectorAll(".scroll")].forEach((box, index) => scrolled[index] && box.scrollTo(...scrolled[index]));
  focus();
}

// Drawing replaces the elements; keyboard users stay where they were.
function focusMark() {
  const active = document.activeElement;
  if (!view.contains(active)) return () => {};
  const same = [...view.querySelectorAll("button, input, a")].indexOf(active);
  return () => same >= 0 && [...view.querySelectorAll("button, input, a")][same]?.focus({ preventScroll: true });
}

async function open(key, keys) {
  await attempt(async () => {
    const details = await source.get(`/api/rows/${encodeURIComponent(key)}`);
    change({ point: key }, false);
    showDetails(dialog, details, { keys, shown: drawnValues(key), metrics: meta.metrics, onrepeat: (other) => open(other, keys) });
  });
}

function keysOf(key) {
  const points = data.charts.flatMap((chart) => chart.series.flatMap((series) => series.points));
  return points.find((point) => point.keys.includes(key))?.keys ?? [key];
}

// The values of a row's point as the charts draw them, each axis once.
function drawnValues(key) {
  const found = new Map();
  for (const chart of data.charts) {
    const point = chart.series.flatMap((series) => series.points).find((one) => one.keys.includes(key));
    if (!point) continue;
    for (const side of ["y", "x"]) {
      const axis = chart[side];
      found.set(`${axis.metric} ${axis.stat}`, { axis, value: point[side], interval: point[`${side}_interval`], point });
    }
  }
  return [...found.values()];
}

async function attempt(action) {
  try {
    await action();
  } catch (fault) {
    if (fault.unreachable === undefined) throw fault;
    const lines = fault.unreachable
      ? [t("fault.unreachable")]
      : [fault.message, fault.allowed && t("fault.allowed", { allowed: fault.allowed }), fault.fix];
    tell(lines.filter(Boolean), true);
  }
}

function tell(lines, retry = false) {
  notice.hidden = !lines.length;
  const again = retry ? el("button", { type: "button", onclick: () => { tell([]); load(); } }, t("fault.retry")) : "";
  notice.replaceChildren(...lines.map((line) => el("div", {}, line)), again);
}

function drawTop() {
  const model = meta.models.find((one) => one.model === state.model) ?? meta.models[0];
  const workload = model?.workloads.find((one) => one.id === state.workload) ?? model?.workloads[0];
  const active = top.contains(document.activeElement) ? document.activeElement.dataset.testid : null;
  top.replaceChildren(
    el("div", { class: "title" }, el("h1", {}, meta.title), el("span", { class: "quiet" }, summary()), unreadable()),
    model
      ? el("div", { class: "choices" },
          choose("model", t("model"), meta.models.map((one) => [one.model, one.model]), model.model, (value) =>
            change({ model: value, workload: "", hidden: "", more: "", point: "" })),
          choose("workload", t("workload"), model.workloads.map((one) => [one.id, t("workload.choice", { label: one.label, n: one.rows })]), workload.id, (value) =>
            change({ model: model.model, workload: value, hidden: "", more: "", point: "" })))
      : "",
    el("div", { class: "choices" },
      choose("language", t("language"), LANGUAGES, language(), (lang) => change({ lang })),
      choose("theme", t("theme"), ["auto", "light", "dark"].map((name) => [name, t(`theme.${name}`)]), storedTheme(), setTheme)),
  );
  if (active) top.querySelector(`[data-testid="${active}"]`)?.focus();
}

function summary() {
  const rows = t("rows.summary", { n: meta.rows, measured: meta.measured });
  const where = source.embedded && meta.made_at ? t("made", { when: moment(meta.made_at), version: meta.prony_version }) : meta.store;
  return [rows, where].filter(Boolean).join(" · ");
}

function unreadable() {
  if (!meta.unreadable.length) return "";
  const told = t("rows.unreadable", { n: meta.unreadable.length, first: meta.unreadable[0] });
  return el("div", { class: "badge warn", "data-testid": "unreadable", title: meta.unreadable.join("\n") }, told);
}

function drawEmpty() {
  const command = (text) => el("pre", {}, el("code", {}, text));
  view.replaceChildren(el("section", { class: "empty", "data-testid": "empty" },
    el("h2", {}, t("empty.title")),
    el("p", {}, source.embedded ? t("empty.report") : t("empty.store", { store: meta.store })),
    el("p", {}, t("empty.run")), command("prony demo"), command("prony run CONFIG"),
    el("p", {}, t("empty.import")), command("prony results import FILE"),
    source.embedded ? "" : el("p", { class: "quiet" }, t("empty.reload"))));
}

function storedTheme() {
  try {
    return localStorage.getItem("prony.theme") ?? "auto";
  } catch {
    return document.documentElement.dataset.theme ?? "auto";
  }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("prony.theme", name);
  } catch {
    // Storage is closed in some private windows; the choice then lasts as long as the page.
  }
}

function afterResize() {
  let width = 0;
  return () => {
    if (view.clientWidth === width) return;
    width = view.clientWidth;
    redrawCharts();
  };
}
