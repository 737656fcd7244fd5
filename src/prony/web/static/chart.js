// One chart as SVG. Which points form which frontier came with the data; here they are only drawn.

import { el, rove, svg } from "./dom.js";
import { quantity, significant } from "./format.js";
import { t, term, words } from "./i18n.js";
import { placeLabels } from "./labels.js";
import { colourClass, dash, symbolPath } from "./marks.js";
import { spread } from "./spread.js";

const NARROW = 520;
const FEW = 3; // up to so many lines say the concurrency of their points always, others while they stand out
const NAMED = 16; // more lines than this are numbered: names would cover the marks

// view: {shown: [series in legend order], numbers: Map(line id → number), x, y: "linear" | "log"}.
export function drawChart(box, chart, view, { onopen, onhover }) {
  box.replaceChildren();
  if (!view.shown.length) {
    const reason = chart.series.length ? t("chart.nothing") : t("chart.no_points");
    box.append(el("p", { class: "quiet" }, reason));
    return;
  }
  const plot = layout(box, chart, view);
  const root = svg("svg", { width: plot.width, height: plot.height, role: "group", "aria-label": describe(chart, view) });
  box.append(root);
  root.append(axes(plot, chart), envelope(plot, chart));
  const groups = view.shown.map((series) => drawSeries(plot, chart, series));
  root.append(...groups.map((group) => group.node));
  drawLabels(root, plot, groups, view);
  const tip = el("div", { class: "tip", hidden: true });
  box.append(tip);
  wire(root, plot, chart, groups, tip, { onopen, onhover });
}

// Makes one line stand out, or none.
export function highlight(box, lineId) {
  const root = box.querySelector("svg");
  if (!root) return;
  root.classList.toggle("dimmed", lineId !== null);
  for (const node of root.querySelectorAll("[data-line]")) node.classList.toggle("active", node.dataset.line === lineId);
}

function describe(chart, view) {
  const points = view.shown.reduce((sum, series) => sum + series.points.length, 0);
  const title = t("chart.title", { x: words(chart.x), y: words(chart.y) });
  return `${title}. ${t("chart.describe", { lines: view.shown.length, points })}`;
}

function layout(box, chart, view) {
  const width = Math.max(280, Math.floor(box.clientWidth));
  const narrow = width < NARROW;
  const height = narrow ? 300 : 400;
  const frame = { left: 52, top: 26, right: width - (narrow ? 14 : 24), bottom: height - 44 };
  const points = view.shown.flatMap((series) => series.points);
  const best = chart.series.flatMap((series) => series.points.filter((point) => point.on_envelope));
  const seen = [...points, ...best];
  const x = scale(seen.map((point) => point.x), view.x, [frame.left, frame.right]);
  const y = scale(seen.map((point) => point.y), view.y, [frame.bottom, frame.top]);
  return { width, height, narrow, frame, x, y };
}

function scale(values, kind, pixels) {
  const d3 = globalThis.d3;
  if (kind === "log") {
    const positive = values.filter((value) => value > 0);
    const [low, high] = positive.length ? d3.extent(positive) : [1, 10];
    const made = d3.scaleLog([low / 1.15, high * 1.15], pixels);
    const ticks = made.ticks().filter((tick) => [1, 2, 5].includes(Number(tick.toExponential()[0])));
    return Object.assign(made, { chosen: ticks.length > 1 ? ticks : made.ticks(5) });
  }
  const made = d3.scaleLinear([Math.min(0, ...values), Math.max(...values) * 1.04 || 1], pixels);
  return Object.assign(made, { chosen: made.ticks(Math.abs(pixels[1] - pixels[0]) > 400 ? 8 : 5) });
}

function axes({ frame, x, y, width, height }, chart) {
  const arrow = (axis) => t(axis.better === "higher" ? "chart.higher" : "chart.lower");
  const title = (axis) => `${words(axis)}, ${axis.unit} — ${arrow(axis)}`;
  const ticksX = x.chosen.map((value) => [
    svg("path", { class: "grid", d: `M${x(value)} ${frame.top}V${frame.bottom}` }),
    svg("text", { class: "tick", x: x(value), y: frame.bottom + 16, "text-anchor": "middle" }, tickText(value)),
  ]);
  const ticksY = y.chosen.map((value) => [
    svg("path", { class: "grid", d: `M${frame.left} ${y(value)}H${frame.right}` }),
    svg("text", { class: "tick", x: frame.left - 6, y: y(value) + 4, "text-anchor": "end" }, tickText(value)),
  ]);
  return svg(
    "g",
    { class: "axes", "aria-hidden": "true" },
    ticksX.flat(),
    ticksY.flat(),
    svg("path", { class: "base", d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}` }),
    svg("text", { class: "axis", x: 2, y: 12 }, title(chart.y)),
    svg("text", { class: "axis", x: width - 2, y: height - 8, "text-anchor": "end" }, title(chart.x)),
  );
}

const tickText = (value) => significant(value, Math.abs(value) >= 1000 ? 4 : 3).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");

function envelope({ x, y }, chart) {
  const best = chart.series.flatMap((series) => series.points.filter((point) => point.on_envelope));
  best.sort((a, b) => a.x - b.x);
  const visible = best.filter((point) => Number.isFinite(x(point.x)) && Number.isFinite(y(point.y)));
  if (visible.length < 2 || chart.series.length < 2) return svg("g", {});
  return svg("path", { class: "envelope", d: path(visible, x, y), "data-testid": "envelope" });
}

const path = (points, x, y) => globalThis.d3.line((point) => x(point.x), (point) => y(point.y))(points);

function drawSeries(plot, chart, series) {
  const { x, y } = plot;
  const { line } = series;
  const points = series.points.filter((point) => Number.isFinite(x(point.x)) && Number.isFinite(y(point.y)));
  const joined = points.filter((point) => point.on_frontier);
  const marks = points.map((point) => mark(plot, chart, line, point));
  const node = svg(
    "g",
    { class: `series ${colourClass(line)}${line.measured ? " measured" : ""}`, "data-line": line.id, "data-testid": "series" },
    joined.length > 1 ? svg("path", { class: "line", d: path(joined, x, y), "stroke-dasharray": dash(line) }) : null,
    points.map((point) => interval(plot, point)),
    marks,
    points.filter((point) => !point.valid).map((point) => svg("text", { class: "flag", x: x(point.x) + 6, y: y(point.y) - 5 }, "!")),
  );
  return { series, points, joined, marks, node };
}

function mark({ x, y }, chart, line, point) {
  const classes = ["mark"];
  if (line.simulated || !point.valid) classes.push("hollow");
  if (!point.on_frontier) classes.push("behind");
  if (point.badges.some((badge) => badge.kind === "stale")) classes.push("stale");
  return svg("path", {
    class: classes.join(" "),
    d: symbolPath(line.precision, point.on_frontier ? 52 : 30),
    transform: `translate(${x(point.x)} ${y(point.y)})`,
    role: "button",
    tabindex: "-1",
    "aria-label": `${term(point.label)}: ${quantity(point.x, chart.x.unit)}, ${quantity(point.y, chart.y.unit)}`,
    "data-key": point.key,
    "data-testid": "point",
  });
}

function interval({ x, y }, point) {
  const across = point.x_interval && `M${x(point.x_interval[0])} ${y(point.y)}H${x(point.x_interval[1])}`;
  const up = point.y_interval && `M${x(point.x)} ${y(point.y_interval[0])}V${y(point.y_interval[1])}`;
  const drawn = [across, up].filter((part) => part && !part.includes("NaN"));
  return drawn.length ? svg("path", { class: "interval", d: drawn.join("") }) : null;
}

// A line is named at its end; in a narrow or crowded chart it is numbered as the list of lines does.
function drawLabels(root, plot, groups, view) {
  const named = groups.filter((group) => group.points.length);
  const texts = named.map(({ series }) => {
    const number = String(view.numbers.get(series.line.id));
    const text = svg("text", { class: `label ${colourClass(series.line)}`, "data-line": series.line.id, "data-testid": "label" });
    text.textContent = plot.narrow || named.length > NAMED ? number : term(series.line.label);
    root.append(text);
    return text;
  });
  const ends = named.map((group, index) => {
    const end = (group.joined.length ? group.joined : group.points).at(-1);
    const size = texts[index].getBBox();
    return { x: plot.x(end.x), y: plot.y(end.y), width: size.width, height: size.height };
  });
  const frame = { left: plot.frame.left + 2, top: 20, right: plot.width - 1, bottom: plot.frame.bottom - 2 };
  const flags = named.flatMap((group) => group.points.filter((point) => !point.valid).map((point) => flagBox(plot, point)));
  const boxes = placeLabels(ends, obstacles(plot, named), frame, { taken: flags });
  boxes.forEach((place, index) => {
    const [text, end] = [texts[index], ends[index]];
    if (!place) return text.remove();
    text.setAttribute("x", place.left);
    text.setAttribute("y", place.bottom - (place.bottom - place.top) * 0.24);
    return text.before(leader(end, place, named[index].series.line));
  });
  root.classList.toggle("few", named.length <= FEW);
  const taken = [...flags, ...boxes.filter(Boolean)];
  named.forEach((group, index) => {
    const own = named.length <= FEW ? taken : [...flags, ...boxes.slice(index, index + 1).filter(Boolean)];
    root.append(concurrencies(plot, group, own, frame));
  });
}

const flagBox = ({ x, y }, point) => ({ left: x(point.x) + 5, right: x(point.x) + 12, top: y(point.y) - 18, bottom: y(point.y) - 3 });

// The concurrency at each point of a line; adds the boxes it takes to `taken`.
function concurrencies(plot, { series, points }, taken, frame) {
  const spots = points.map((point) => ({ x: plot.x(point.x), y: plot.y(point.y), width: 7 * String(point.concurrency).length, height: 13 }));
  const places = placeLabels(spots, spots, frame, { taken, distances: [7, 11, 16] });
  taken.push(...places.filter(Boolean));
  const texts = points.map((point, index) => places[index] && svg("text", { x: places[index].left, y: places[index].bottom - 3 }, String(point.concurrency)));
  return svg("g", { class: "concurrency", "data-line": series.line.id, "aria-hidden": "true", "data-testid": "concurrency" }, texts);
}

function leader(end, place, line) {
  const toX = Math.min(Math.max(end.x, place.left), place.right);
  const toY = Math.min(Math.max(end.y, place.top), place.bottom);
  const far = Math.hypot(toX - end.x, toY - end.y) > 14;
  return svg("path", { class: `leader ${colourClass(line)}`, "data-line": line.id, d: far ? `M${end.x} ${end.y}L${toX} ${toY}` : "" });
}

function obstacles({ x, y }, groups) {
  const spots = [];
  for (const { points, joined } of groups) {
    for (const point of points) spots.push({ x: x(point.x), y: y(point.y) });
    for (let index = 1; index < joined.length; index += 1) {
      const [a, b] = [joined[index - 1], joined[index]].map((point) => [x(point.x), y(point.y)]);
      const steps = Math.floor(Math.hypot(b[0] - a[0], b[1] - a[1]) / 12);
      for (let step = 1; step < steps; step += 1) {
        spots.push({ x: a[0] + ((b[0] - a[0]) * step) / steps, y: a[1] + ((b[1] - a[1]) * step) / steps });
      }
    }
  }
  return spots;
}

function wire(root, plot, chart, groups, tip, { onopen, onhover }) {
  const spots = groups.flatMap((group) =>
    group.points.map((point, index) => ({ group, point, index, mark: group.marks[index], x: plot.x(point.x), y: plot.y(point.y) })),
  );
  if (!spots.length) return;
  const nearest = globalThis.d3.Delaunay.from(spots, (spot) => spot.x, (spot) => spot.y);
  const show = (spot) => {
    onhover(spot ? spot.group.series.line.id : null);
    fillTip(tip, plot, chart, spot);
  };
  const under = (event) => {
    const [x, y] = globalThis.d3.pointer(event, root);
    const spot = spots[nearest.find(x, y)];
    return Math.hypot(spot.x - x, spot.y - y) < 26 ? spot : null;
  };
  root.addEventListener("pointermove", (event) => show(under(event)));
  root.addEventListener("pointerleave", () => show(null));
  root.addEventListener("click", (event) => {
    const own = spots.find((spot) => spot.mark === event.target);
    const spot = own ?? under(event);
    if (spot) onopen(spot.point);
  });
  walk(spots, groups, show, onopen);
}

// Left and right along a line, up and down between lines, Enter opens.
function walk(spots, groups, show, onopen) {
  const marks = spots.map((spot) => spot.mark);
  marks[0].setAttribute("tabindex", "0");
  for (const spot of spots) {
    spot.mark.addEventListener("focus", () => show(spot));
    spot.mark.addEventListener("blur", () => show(null));
    spot.mark.addEventListener("keydown", (event) => {
      const chosen = event.key === "Enter" || event.key === " ";
      const next = neighbour(spots, groups, spot, event.key);
      if (next || chosen) event.preventDefault(); // else the same key press also lands on the card's first button
      if (chosen) onopen(spot.point);
      if (next) rove(marks, next.mark);
    });
  }
}

function neighbour(spots, groups, spot, key) {
  const along = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (along) return spots.find((other) => other.group === spot.group && other.index === spot.index + along);
  const across = { ArrowDown: 1, ArrowUp: -1 }[key];
  if (!across) return undefined;
  const filled = groups.filter((group) => group.points.length);
  const group = filled[(filled.indexOf(spot.group) + across + filled.length) % filled.length];
  return spots.find((other) => other.group === group);
}

function fillTip(tip, plot, chart, spot) {
  tip.hidden = !spot;
  if (!spot) return;
  const { point } = spot;
  const value = (axis, amount, between) => el("div", {}, `${words(axis)}: `, el("b", {}, quantity(amount, axis.unit)), spread(point, axis, between));
  tip.replaceChildren(
    el("div", { class: "title" }, term(point.label)),
    value(chart.y, point.y, point.y_interval),
    value(chart.x, point.x, point.x_interval),
    ...point.badges.map((badge) => el("div", { class: `badge ${badge.kind}` }, t(`badge.${badge.kind}`), badge.rule ? ` · ${badge.rule}` : "")),
  );
  const left = Math.min(Math.max(spot.x - tip.offsetWidth / 2, 0), plot.width - tip.offsetWidth);
  const above = spot.y - tip.offsetHeight - 12;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 0 ? above : spot.y + 14}px`;
}
