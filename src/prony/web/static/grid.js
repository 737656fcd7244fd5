// A table that sorts by its headers, with a header that stays in sight.

import { el, rove, scroller } from "./dom.js";
import { t } from "./i18n.js";
import { parseSort } from "./state.js";

// columns: [{key, title, unit, number, value(row), cell(row)}]; options: sort text, onsort(text), onopen(row), onhover(row or null), rowClass(row).
export function grid(columns, rows, { sort, onsort, onopen = null, onhover = null, rowClass = () => "", testid }) {
  const sorted = sortRows(columns, rows, sort);
  const body = el("tbody", {}, sorted.map((row) => line(row, columns, { onopen, onhover, rowClass })));
  if (onopen) walkRows(body);
  const head = el("thead", {}, el("tr", {}, columns.map((column) => header(column, sort, onsort))));
  return scroller(el("table", { "data-testid": testid }, head, body));
}

function header(column, sort, onsort) {
  const { key, ascending } = parseSort(sort);
  const chosen = key === column.key;
  const attributes = { class: [column.number && "number", column.tight && "tight"].filter(Boolean).join(" ") || null, scope: "col" };
  if (chosen) attributes["aria-sort"] = ascending ? "ascending" : "descending";
  const title = [column.title, column.unit ? el("span", { class: "unit" }, column.unit) : null];
  if (!column.value) return el("th", attributes, title);
  // The first click sorts numbers with the largest on top and words from A.
  const first = column.number ? column.key : `-${column.key}`;
  const second = column.number ? `-${column.key}` : column.key;
  const next = sort === first ? second : first;
  const label = t("sort.by", { column: column.title });
  const arrow = chosen ? el("span", { class: "arrow", "aria-hidden": "true" }, ascending ? "▲" : "▼") : null;
  return el("th", attributes, el("button", { type: "button", title: label, onclick: () => onsort(next) }, title, arrow));
}

function line(row, columns, { onopen, onhover, rowClass }) {
  const cells = columns.map((column) => el("td", { class: column.number ? "number" : null }, column.cell(row)));
  const attributes = { class: rowClass(row) || null };
  if (onhover) Object.assign(attributes, { onpointerenter: () => onhover(row), onpointerleave: () => onhover(null) });
  if (onopen) {
    Object.assign(attributes, {
      class: `open ${rowClass(row)}`.trim(),
      onclick: () => onopen(row),
      onkeydown: (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault(); // else the same key press also lands on the card's first button
        onopen(row);
      },
    });
  }
  return el("tr", attributes, cells);
}

function walkRows(body) {
  const rows = [...body.rows];
  rows.forEach((row, index) => row.setAttribute("tabindex", index === 0 ? "0" : "-1"));
  body.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const next = step && rows[rows.indexOf(event.target.closest("tr")) + step];
    if (!next) return;
    event.preventDefault();
    rove(rows, next);
  });
}

// Rows without a value stay at the end, whichever way the rest goes.
function sortRows(columns, rows, sort) {
  const { key, ascending } = parseSort(sort);
  const column = columns.find((one) => one.key === key);
  if (!column?.value) return rows;
  const missing = (value) => value === null || value === undefined || value === "";
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  return [...rows].sort((one, other) => {
    const [a, b] = [column.value(one), column.value(other)];
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    return ascending ? compare(a, b) : compare(b, a);
  });
}
