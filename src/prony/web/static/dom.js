// Elements from data. Strings only ever become text nodes or attribute values, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

export const svg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// Moves focus among nodes with the arrow keys; one of them is in the tab order at a time.
export function rove(nodes, node) {
  for (const other of nodes) other.setAttribute("tabindex", other === node ? "0" : "-1");
  node.focus();
}

// A choice from a list, with its name above it. options: [[id, text]].
export function choose(name, label, options, value, onchoose) {
  const box = el("select", { "data-testid": name, onchange: (event) => onchoose(event.target.value) },
    options.map(([id, text]) => el("option", { value: id }, text)));
  box.value = value;
  return el("label", {}, el("span", {}, label), box);
}

// A box that scrolls, and shows at its edges that there is more.
export function scroller(child) {
  const box = el("div", { class: "scroll" }, child);
  const outer = el("div", { class: "scroller" }, box);
  const mark = () => {
    outer.classList.toggle("more-left", box.scrollLeft > 2);
    outer.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    outer.style.setProperty("--bar-y", `${box.offsetWidth - box.clientWidth}px`);
    outer.style.setProperty("--bar-x", `${box.offsetHeight - box.clientHeight}px`);
  };
  box.addEventListener("scroll", mark, { passive: true });
  new ResizeObserver(mark).observe(box);
  return outer;
}
