// Softmax under your hands. The same in torch: lib/widgets/softmax.py.
const DIMS = [4, 16, 64, 256, 1024], MOST = 64;

export default {
  render({ model, el }) {
    const { svg, number } = kit;
    const ui = kit.frame(model, el, {
      title: "Softmax: where does the weight go?",
      help: "One query looks at random keys. Change the size of the vectors, divide by √d or don't, and watch the weights and what a gradient could still do. Click a bar, or use the arrow keys, to turn the score of that key.",
      keep: ["dim", "count", "scaled", "temperature", "chosen"],
    });
    const drawn = kit.rows(kit.unpack(model.get("drawn")), MOST);
    ui.choice({ trait: "dim", label: "numbers in a vector, d", options: DIMS.map((d) => [d, String(d)]) });
    ui.slider({ trait: "count", label: "keys", min: 2, max: MOST });
    ui.slider({ trait: "temperature", label: "temperature", min: 0.1, max: 4, step: 0.1, text: (v) => number(v, 1) });
    ui.tick({ trait: "scaled", label: "divide scores by √d" });
    ui.again();

    const H = 120, TOP = 20, LEFT = 44, STEP = H + 2 * TOP; // two panels, one above the other
    const axes = svg("g"), bars = svg("g"), plate = svg("rect", { x: LEFT, y: 0, fill: "transparent" });
    const drawing = svg("svg", {}, axes, bars, plate);
    ui.stage.append(drawing);
    const axis = (y, width, low, high, label, ticks) => ticks.flatMap((t) => {
      const at = y + ((high - t) / (high - low)) * H;
      return [
        svg("line", { x1: LEFT, x2: width, y1: at, y2: at, stroke: "var(--line)", "stroke-width": t === 0 ? 1 : 0.4 }),
        svg("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end", class: "soft" }, number(t, 2)),
      ];
    }).concat(svg("text", { x: 0, y: y - 7 }, label));

    const chosen = () => Math.min(model.get("chosen"), model.get("count") - 1);
    const tell = kit.picker(plate, {
      rows: 1, columns: () => model.get("count"), label: "Keys, one bar each",
      get: () => [0, chosen()], set: (_, k) => ui.set("chosen", k), name: (_, k) => `key ${k + 1}`,
    });

    ui.draw(["dim", "count", "scaled", "temperature", "chosen"], () => {
      const dim = model.get("dim"), n = model.get("count"), k = chosen();
      const factor = 1 / model.get("temperature") / (model.get("scaled") ? Math.sqrt(dim) : 1);
      const weights = kit.softmax(drawn[DIMS.indexOf(dim)].slice(0, n).map((s) => s * factor));
      // ∂A_j/∂s_k = A_j (δ_jk − A_k), and the score goes through the temperature first
      const gradient = weights.map((w, j) => (w * ((j === k) - weights[k])) / model.get("temperature"));
      const largest = Math.max(...weights);
      const shared = Math.exp(-weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0));

      const width = ui.room(), step = (width - LEFT) / n, wide = Math.max(1, step * 0.8);
      drawing.setAttribute("viewBox", `0 0 ${width} ${2 * STEP}`);
      drawing.setAttribute("width", width);
      plate.setAttribute("width", width - LEFT);
      plate.setAttribute("height", 2 * STEP);
      axes.replaceChildren(
        ...axis(TOP, width, 0, 1, "weight of each key", [0, 0.5, 1]),
        ...axis(TOP + STEP, width, -0.25, 0.25, "how it changes with the chosen score", [-0.25, 0, 0.25]));
      const bar = (j, y, height) => svg("rect", { x: LEFT + j * step + (step - wide) / 2, y, width: wide, height, fill: j === k ? "var(--orange)" : "var(--blue)" });
      bars.replaceChildren(
        ...weights.map((w, j) => bar(j, TOP + H * (1 - w), H * w)),
        ...gradient.map((g) => 2 * H * kit.clamp(g, -0.25, 0.25)).map((g, j) => bar(j, TOP + STEP + H / 2 - Math.max(0, g), Math.abs(g))),
        svg("path", { d: `M ${LEFT + (k + 0.5) * step - 5} ${TOP + H + 12} l 5 -8 l 5 8 z`, fill: "var(--orange)" }));
      tell();
      ui.show({ weights, gradient, largest, shared },
        `d = ${dim}, ${model.get("scaled") ? "divided by √d" : "not scaled"}: the largest of ${n} weights is ${number(largest)}, as if ${number(shared, 1)} keys shared evenly. `
        + `Key ${k + 1} has ${number(weights[k])}; a little more score adds ${number(gradient[k], 3)} times as much to it.`);
    });
    return ui.stop;
  },
};
