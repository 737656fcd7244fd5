// How a line looks: colour = SKU (style.css), shape = precision, dash = speculative decoding, hollow = simulated or invalid.

import { svg } from "./dom.js";

const SHAPES = { fp4: "symbolCircle", fp8: "symbolSquare", bf16: "symbolTriangle", int4: "symbolDiamond", q4: "symbolDiamond" };

export const colourClass = (line) => `sku-${line.sku_family}`;

export const dash = (line) => (line.spec_decoding === "none" ? null : "5 3");

export function symbolPath(precision, size) {
  const d3 = globalThis.d3;
  return d3.symbol(d3[SHAPES[precision] ?? "symbolStar"], size)();
}

export function swatch(line) {
  const mark = svg("path", { d: symbolPath(line.precision, 42), transform: "translate(16 7)", class: "mark" });
  if (line.simulated) mark.classList.add("hollow");
  return svg(
    "svg",
    { width: 32, height: 14, class: `swatch ${colourClass(line)}`, "aria-hidden": "true" },
    svg("path", { d: "M1 7H31", class: "line", "stroke-dasharray": dash(line) }),
    mark,
  );
}
