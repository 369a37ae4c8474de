// Softmax under your hands. The same in torch: lib/widgets/softmax.py.
const DIMS = [4, 16, 64, 256, 1024], MOST = 64;

export default {
  render({ model, el }) {
    const { svg, number } = kit;
    const ui = kit.frame(model, el, {
      title: "Who gets the weight, and what is left of the gradient?",
      help: "One query looks at random keys. Change d, with and without √d. Click a bar or use the arrow keys to choose a key: the lower picture says what happens if its score grows.",
      keep: ["dim", "count", "scaled", "temperature", "chosen"],
    });
    const drawn = kit.rows(kit.unpack(model.get("drawn")), MOST);
    ui.choice({ trait: "dim", label: "numbers in a vector, d", options: DIMS.map((d) => [d, String(d)]) });
    ui.slider({ trait: "count", label: "keys", min: 2, max: MOST });
    ui.slider({ trait: "temperature", label: "temperature", min: 0.1, max: 4, step: 0.1, text: (v) => number(v, 1) });
    ui.tick({ trait: "scaled", label: "divide scores by √d" });
    ui.again();

    const H = 116, TOP = 48, LEFT = 46, BETWEEN = 64; // of the two panels, one above the other
    const BOTTOM = TOP + 2 * H + BETWEEN, UPPER = TOP, LOWER = TOP + H + BETWEEN;
    const picture = svg("g"), plate = svg("rect", { x: LEFT, y: TOP, height: BOTTOM - TOP, fill: "transparent" });
    const drawing = svg("svg", {}, picture, plate);
    ui.stage.append(drawing);

    const chosen = () => Math.min(model.get("chosen"), model.get("count") - 1);
    const tell = kit.picker(plate, {
      rows: 1, columns: () => model.get("count"), label: "Keys, one bar each",
      get: () => [0, chosen()], set: (_, k) => { if (k !== model.get("chosen")) ui.set("chosen", k); }, name: (_, k) => `key ${k + 1}`,
    });
    const label = (x, y, text, { anchor = "start", soft = false, ...more } = {}) =>
      svg("text", { x, y, "text-anchor": anchor, class: soft ? "soft" : null, style: "font-variant-numeric: tabular-nums", ...more }, text);
    const line = (y, width, strong, dashed) => svg("line", { x1: LEFT, x2: width, y1: y, y2: y, stroke: "var(--line)", "stroke-width": strong ? 1 : 0.5, "stroke-dasharray": dashed ? "5 4" : null });
    const ticks = (values, y, width, digits) => values.flatMap(([value, at]) => [line(y + at, width, value === 0), label(LEFT - 7, y + at + 4, number(value, digits), { anchor: "end", soft: true })]);

    ui.draw(["dim", "count", "scaled", "temperature", "chosen"], () => {
      const dim = model.get("dim"), n = model.get("count"), k = chosen(), scaled = model.get("scaled"), temperature = model.get("temperature");
      const scores = drawn[DIMS.indexOf(dim)].slice(0, n);
      const weigh = (divide) => kit.softmax(scores.map((s) => s / temperature / (divide ? Math.sqrt(dim) : 1)));
      const weights = weigh(scaled), other = weigh(!scaled);
      // ∂A_j/∂s_k = A_j (δ_jk − A_k), and the score goes through the temperature first
      const gradient = weights.map((w, j) => (w * ((j === k) - weights[k])) / temperature);
      const largest = Math.max(...weights);
      const shared = Math.exp(-weights.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0));

      const width = ui.room(700), step = (width - LEFT) / n, wide = Math.max(1, step * 0.76);
      const most = 0.25 / temperature; // no entry of the gradient can be larger
      for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${BOTTOM + 20}`, width, height: BOTTOM + 20 })) drawing.setAttribute(name, value);
      plate.setAttribute("width", width - LEFT);
      const x = (j) => LEFT + j * step + (step - wide) / 2, middle = (j) => LEFT + (j + 0.5) * step;
      // a number beside the end of its bar, on the side where there is room
      const beside = (j, y, text) => { const left = x(j) > width - 70; return label(left ? x(j) - 6 : x(j) + wide + 6, y, text, { anchor: left ? "end" : "start", "font-weight": 700 }); };
      const colour = (j) => (j === k ? "var(--orange)" : "var(--blue)");
      const winner = weights.indexOf(largest), zero = LOWER + H / 2;
      const solid = (j, y, height) => svg("rect", { x: x(j), y, width: wide, height, fill: colour(j) });
      const outline = (w, j) => svg("path", { d: `M ${x(j) - 1} ${UPPER + H} V ${UPPER + H * (1 - w)} H ${x(j) + wide + 1} V ${UPPER + H}`, fill: "none", stroke: "var(--ink)", "stroke-width": 1.2 });
      picture.replaceChildren(
        ...[[UPPER, H + 24], [LOWER, BOTTOM - LOWER]].map(([y, height]) => svg("rect", { x: LEFT + k * step, y, width: step, height, fill: "var(--orange)", "fill-opacity": 0.12 })),
        label(0, 14, "weight of each key"),
        svg("rect", { x: 0, y: 23, width: 10, height: 10, fill: "var(--blue)" }), label(15, 32, scaled ? "divided by √d" : "not divided", { soft: true }),
        svg("rect", { x: 108.5, y: 23.5, width: 10, height: 10, fill: "none", stroke: "var(--ink)", "stroke-width": 1.2 }), label(124, 32, scaled ? "not divided" : "divided by √d", { soft: true }),
        svg("path", { d: `M 219 28 h 16`, stroke: "var(--line)", "stroke-dasharray": "5 4" }), label(240, 32, "all alike", { soft: true }),
        ...ticks([[1, 0], [0.5, H / 2], [0, H]], UPPER, width, 1),
        ...weights.map((w, j) => solid(j, UPPER + H * (1 - w), H * w)), ...other.map(outline),
        line(UPPER + H * (1 - 1 / n), width, true, true),
        beside(winner, UPPER + H * (1 - largest) + 11, number(largest)),
        label(kit.clamp(middle(k), LEFT + 18, width - 24), UPPER + H + 18, `key ${k + 1}`, { anchor: "middle", "font-weight": 700 }),
        label(0, LOWER - 15, `change, for each unit that the score of key ${k + 1} grows`),
        ...ticks([[most, 0], [0, H / 2], [-most, H]], LOWER, width, 2),
        ...gradient.map((g, j) => solid(j, zero - (Math.max(0, g) / most) * (H / 2), (Math.abs(g) / most) * (H / 2))),
        beside(k, zero - (gradient[k] / most) * (H / 2) + (gradient[k] > 0.3 * most ? 11 : -5), `+${number(gradient[k], 3)}`),
        label(LEFT, BOTTOM + 17, "key 1", { soft: true }), label(width, BOTTOM + 17, `key ${n}`, { anchor: "end", soft: true }));
      tell();
      ui.show({ weights, other, gradient, largest, shared },
        `d = ${dim}, ${scaled ? "divided by √d" : "not divided"}: the largest of ${n} weights is ${number(largest)}, as if ${number(shared, 1)} keys shared evenly `
        + `(${scaled ? "not divided" : "divided"}, the largest is ${number(Math.max(...other))}). `
        + `Key ${k + 1} has ${number(weights[k])} and gains ${number(gradient[k], 3)} for each unit that its score grows.`);
    });
    return ui.stop;
  },
};
