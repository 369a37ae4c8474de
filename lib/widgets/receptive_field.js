// How far does a convolution see? The same in torch: lib/widgets/receptive_field.py.
const SIDE = 64, NEVER = -1;
const LOOK = `
  .place { position: relative; flex: none; }
  .place > * { position: absolute; inset: 0; width: 100%; height: 100%; overflow: hidden; }
  .facts { flex: 1 1 15rem; }
  .facts th { text-align: left; padding-left: 0; }
  .facts .part { color: var(--ink); font-weight: 650; padding-top: 0.6rem; }
  .facts tbody:first-child .part { padding-top: 0; }
  .facts .unit { text-align: left; padding-left: 0; color: var(--soft); }
  .legend { display: flex; align-items: center; gap: 0.5rem; font-size: 0.85rem; }
  .legend[hidden] { display: none; }
  .legend canvas { width: 6rem; height: 0.75rem; }`;

const dilationOf = (kind, layer) => (kind === "doubling" ? 2 ** layer : kind);

// One layer, for a line of pixels: each gets the sum of its window. A square window of ones is that along rows, then along columns.
const spread = (line, kernel, dilation) => line.map((_, i) => {
  let sum = 0;
  for (let tap = -(kernel >> 1); tap <= kernel >> 1; tap++) sum += line[i + tap * dilation] ?? 0; // beyond the picture there is nothing
  return sum;
});
const lit = (place) => Array.from({ length: SIDE }, (_, i) => Number(i === place));

// How many paths lead from each pixel of a line to `place`: from the last layer back to the picture.
const pathsTo = (place, layers, kernel, kind) => {
  let line = lit(place);
  for (let layer = layers - 1; layer >= 0; layer--) line = spread(line, kernel, dilationOf(kind, layer));
  return line;
};

// How many layers until news from [row, column] `from` is at `to`.
const layersBetween = (from, to, kernel, kind) => {
  let lines = from.map(lit);
  for (let layer = 0; layer < SIDE; layer++) {
    if (lines.every((line, axis) => line[to[axis]] > 0)) return layer;
    const dilation = dilationOf(kind, layer);
    if (dilation >= SIDE) return NEVER; // such a window finds nothing but its own middle in the picture
    lines = lines.map((line) => spread(line, kernel, dilation).map((x) => Number(x > 0)));
  }
  return NEVER;
};

export default {
  render({ model, el }) {
    const { svg, html } = kit, get = (name) => model.get(name);
    const whole = (x) => x.toLocaleString("en-GB");
    const ui = kit.frame(model, el, {
      title: "How far does a convolution see?",
      help: "Click a pixel: that is A. What can reach it through the layers stays bright. B is what A should hear of: drag it, or move it with the arrow keys.",
      keep: ["row", "column", "from_row", "from_column", "layers", "kernel", "dilation", "view"],
    });
    ui.slider({ trait: "layers", label: "layers", min: 1, max: 8 });
    ui.choice({ trait: "kernel", label: "window", options: [3, 5, 7].map((k) => [k, `${k} × ${k}`]) });
    ui.choice({ trait: "dilation", label: "gaps in the window (dilation)", options: [[1, "1: none"], [2, "2"], ["doubling", "1, 2, 4 …"]] });
    ui.choice({ trait: "view", label: "show", options: [["seen", "what reaches A"], ["paths", "by how many paths"]] });
    ui.again();

    const photo = kit.rows(kit.unpack(get("photo"), "u1"), 3);
    const canvas = html("canvas", { "aria-hidden": "true" });
    const plate = svg("rect", { fill: "transparent" }), over = svg("g", { "pointer-events": "none" });
    const style = { fill: "var(--panel)", stroke: "var(--orange)", "stroke-width": 2 };
    const mark = (letter, shape) => svg("g", {}, shape, svg("text", { "text-anchor": "middle", y: 4.5, style: "font-weight: 700" }, letter));
    const a = mark("A", svg("circle", { r: 10, ...style })), b = mark("B", svg("path", { d: "M 0 -13 L 13 0 L 0 13 L -13 0 Z", ...style }));
    a.setAttribute("pointer-events", "none");
    const drawing = svg("svg", {}, plate, over, a, b);
    const place = html("div", { class: "place" }, canvas, drawing);
    const facts = html("table", {}), many = html("span", {}), bar = html("canvas", { "aria-hidden": "true" });
    const legend = html("p", { class: "legend" }, "none", bar, many);
    kit.paint(bar, Array.from({ length: 64 }, (_, i) => i / 63), 64, (t) => kit.sequential(t).map((x) => 0.75 * x + 32)); // as in the picture, over mid-grey
    ui.stage.append(html("style", {}, LOOK), place, html("div", { class: "facts" }, facts, legend));

    const name = (r, c) => `row ${r + 1}, column ${c + 1}`;
    const tellA = kit.picker(plate, {
      rows: SIDE, columns: SIDE, label: "A, the pixel that looks",
      get: () => [get("row"), get("column")],
      set: (r, c) => { model.set("row", r); ui.set("column", c); }, name,
    });
    const tellB = kit.handle(b, { // in a plane whose second axis points up
      label: "B, the pixel that A should hear of", step: 1, low: 0, high: SIDE - 1,
      get: () => [get("from_column"), SIDE - 1 - get("from_row")],
      set: ([x, y]) => { model.set("from_column", Math.round(x)); ui.set("from_row", SIDE - 1 - Math.round(y)); },
      toData: (x, y) => {
        const box = place.getBoundingClientRect();
        return [((x - box.left) / box.width) * SIDE - 0.5, (1 - (y - box.top) / box.height) * SIDE - 0.5];
      },
    });

    ui.draw(["row", "column", "from_row", "from_column", "layers", "kernel", "dilation", "view"], () => {
      const [r, c, br, bc] = ["row", "column", "from_row", "from_column"].map(get), [layers, kernel, kind, view] = ["layers", "kernel", "dilation", "view"].map(get);
      const down = pathsTo(r, layers, kernel, kind), across = pathsTo(c, layers, kernel, kind);
      const flat = down.flatMap((x) => across.map((y) => x * y)), all = flat.reduce((sum, x) => sum + x, 0);
      const seen = flat.filter((x) => x > 0).length, most = Math.max(...flat);
      let half = 0, sum = 0;
      for (const x of Float64Array.from(flat).sort().reverse()) { half++; sum += x; if (sum >= all / 2) break; }
      let reach = 0;
      for (let layer = 0; layer < layers; layer++) reach += (kernel >> 1) * dilationOf(kind, layer);
      const window = 2 * reach + 1, needed = layersBetween([br, bc], [r, c], kernel, kind);
      const steps = Math.abs(SIDE * (r - br) + c - bc), share = kit.number((100 * seen) / SIDE ** 2, 1);

      const room = ui.room(), cell = Math.max(4, Math.floor(Math.min(room, 384) / SIDE)), size = cell * SIDE;
      place.style.width = place.style.height = `${size}px`;
      drawing.setAttribute("width", size); drawing.setAttribute("height", size);
      plate.setAttribute("width", size); plate.setAttribute("height", size);
      const panel = ui.colour("panel").match(/[0-9a-f]{2}/gi).map((x) => parseInt(x, 16));
      kit.paint(canvas, flat.map((_, i) => i), SIDE, (i) => {
        const grey = photo[i].reduce((x, y) => x + y) / 3;
        if (view === "paths") return kit.sequential(flat[i] / most).map((x) => 0.75 * x + 0.25 * grey);
        return flat[i] > 0 ? photo[i] : panel.map((x) => 0.7 * x + 0.3 * grey);
      });
      const at = (row, column) => `translate(${(column + 0.5) * cell} ${(row + 0.5) * cell})`;
      // The letter stands above its pixel (below, at the upper edge), so that a small window isn't covered.
      const off = Math.min(reach, 2) + Math.ceil(14 / cell);
      a.setAttribute("transform", at(r - off < 1 ? r + off : r - off, kit.clamp(c, 2, SIDE - 3))); b.setAttribute("transform", at(br, bc));
      const frame = { x: (c - reach) * cell, y: (r - reach) * cell, width: window * cell, height: window * cell, fill: "none" };
      const pixel = { x: c * cell - 1, y: r * cell - 1, width: cell + 2, height: cell + 2, fill: "none" };
      over.replaceChildren(...[frame, pixel].flatMap((box) => [
        svg("rect", { ...box, stroke: "var(--panel)", "stroke-width": 4 }), svg("rect", { ...box, stroke: "var(--orange)", "stroke-width": 2 })]));
      tellA(); tellB();
      b.setAttribute("aria-valuetext", name(br, bc));

      const row = (label, value, unit = "") => html("tr", {}, html("th", { scope: "row" }, label), html("td", {}, value), html("td", { class: "unit" }, unit));
      const part = (title, ...lines) => html("tbody", {}, html("tr", {}, html("th", { scope: "rowgroup", colspan: 3, class: "part" }, title)), ...lines);
      facts.replaceChildren(
        part("What reaches A", row("pixels", whole(seen)), row("of the picture", share, "%"), row("from end to end", whole(window), "pixels"), row("half the paths from", whole(half), half === 1 ? "pixel" : "pixels")),
        part("How long news takes from B", row("through such layers", needed === NEVER ? "never" : whole(needed), needed === NEVER ? "" : needed === 1 ? "layer" : "layers"), row("recurrent, row by row", whole(steps), steps === 1 ? "step" : "steps")));
      legend.hidden = view !== "paths";
      many.textContent = `${most.toLocaleString("en-GB", { notation: "compact", compactDisplay: "long" })} paths`;
      const paths = kit.rows(flat, SIDE), gaps = { 1: "", 2: " with dilation 2", doubling: " with dilation 1, 2, 4 and so on" }[kind];
      const news = steps === 0 ? "B is A itself." : `News from B, ${name(br, bc)}, ${needed === NEVER ? "never arrives, however many such layers there are" : `takes ${needed} such layer${needed === 1 ? "" : "s"}`}; a recurrent network takes ${whole(steps)} steps in a row between the two.`;
      ui.show({ paths, seen, window, half, needed, steps },
        `${layers === 1 ? "1 layer" : `${layers} layers`} of ${kernel} × ${kernel}${gaps}: ${whole(seen)} of ${whole(SIDE ** 2)} pixels reach A, ${name(r, c)}. That is ${share} %, and half of all paths come from ${whole(half)}. ${news}`);
    });
    return ui.stop;
  },
};
