// Patches of a photograph look for their like. The same in torch: lib/widgets/patch_attention.py.
const ROWS = 26, COLUMNS = 40, COUNT = ROWS * COLUMNS, SIDE = 4; // SIDE: of a patch in the small picture that is compared
const TEMPERATURES = [0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10];

export default {
  render({ model, el }) {
    const { html, svg, number } = kit;
    const ui = kit.frame(model, el, {
      title: "Who looks like this patch?",
      help: "Click or tap any patch, or move with the arrow keys. It asks all others how much they are like it, and the bright ones get its weight.",
      keep: ["patch", "similarity", "temperature", "features", "dim"],
    });

    // ---- what is compared: features => (dimmed or not) => the tokens ----
    const right = Array.from({ length: COUNT }, (_, i) => i % COLUMNS >= COLUMNS / 2);
    const sky = Array.from(kit.unpack(model.get("sky"), "u1"), Boolean);
    const bytes = kit.unpack(model.get("pixels"), "u1"), across = COLUMNS * SIDE, plane = bytes.length / 3;
    const raw = Array.from({ length: COUNT }, (_, i) => {
      const token = [], y = Math.floor(i / COLUMNS) * SIDE, x = (i % COLUMNS) * SIDE;
      for (let c = 0; c < 3; c++) for (let r = 0; r < SIDE; r++) for (let k = 0; k < SIDE; k++) token.push(bytes[c * plane + (y + r) * across + x + k] / 255);
      return token;
    });
    const looks = kit.rows(kit.unpack(model.get("looks"), "f2"), 12);
    const tokens = {
      raw: [raw, raw.map((token, i) => (right[i] ? token.map((v) => v / 2) : token))],
      looks: [looks.slice(0, COUNT), looks.slice(COUNT)],
    };
    const score = {
      dot: (q, k) => kit.dot(q, k) / q.length,
      cosine: (q, k) => kit.dot(q, k) / Math.sqrt(kit.dot(q, q) * kit.dot(k, k)),
      gaussian: (q, k) => -q.reduce((sum, v, i) => sum + (v - k[i]) ** 2, 0) / q.length,
    };
    const formula = { dot: "q · k ÷ d", cosine: "cosine", gaussian: "−|q − k|² ÷ d" };
    const weigh = (dim) => {
      const all = tokens[model.get("features")][Number(dim)], asks = all[model.get("patch")], f = score[model.get("similarity")];
      return kit.softmax(all.map((k) => f(asks, k) / model.get("temperature")));
    };

    // ---- the picture: photograph, shade over its right half, weights, outline ----
    const over = "position: absolute; inset: 0; width: 100%; height: 100%; border-radius: 4px;";
    const photo = html("img", { src: model.get("photo"), alt: "", style: over });
    const shade = html("div", { style: "position: absolute; inset: 0 0 0 50%; border-radius: 0 4px 4px 0; background: #000; opacity: 0.5;" });
    const layer = html("canvas", { style: over, "aria-hidden": "true" });
    const marks = svg("svg", { style: over });
    const picture = html("div", { style: "position: relative;" }, photo, shade, layer, marks);
    const bar = html("span", { style: "display: inline-block; width: 7rem; height: 0.7rem; border-radius: 2px; vertical-align: -1px; margin: 0 0.4rem;" });
    const most = html("span"), means = html("span");
    const legend = html("div", { style: "display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; width: 100%; font-size: 0.8125rem; color: var(--soft); font-variant-numeric: tabular-nums;" },
      means, html("span", {}, "weight 0", bar, most));
    ui.stage.append(picture, legend);
    ui.stage.style.rowGap = "0.4rem";
    ui.controls.style.marginTop = "0.6rem";
    ui.stage.after(ui.controls); // the photograph comes first

    const tint = (t) => { const light = (0.33 + 0.3 * t) / 0.65; return kit.sequential(t).map((v) => Math.round(v * light)); };
    const stops = Array.from({ length: 17 }, (_, i) => kit.css(tint(Math.sqrt(i / 16)))); // colours follow the root of the weight
    bar.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;

    ui.choice({ trait: "similarity", label: "similarity", options: [["cosine", "cosine"], ["dot", "dot product"], ["gaussian", "Gaussian"]] });
    ui.choice({ trait: "features", label: "compared by", options: [["looks", "looks"], ["raw", "raw pixels"]] });
    ui.slider({ trait: "temperature", label: "temperature", values: TEMPERATURES, text: (v) => String(Number(v.toPrecision(3))) });
    ui.tick({ trait: "dim", label: "right half at half light" });
    ui.again();

    const place = (i) => `row ${Math.floor(i / COLUMNS) + 1}, column ${(i % COLUMNS) + 1}`;
    const tell = kit.picker(marks, {
      rows: ROWS, columns: COLUMNS, label: "Patches of the photograph",
      get: () => [Math.floor(model.get("patch") / COLUMNS), model.get("patch") % COLUMNS],
      set: (r, c) => { if (model.get("patch") !== r * COLUMNS + c) ui.set("patch", r * COLUMNS + c); },
      name: (r, c) => place(r * COLUMNS + c),
    });

    ui.draw(["patch", "similarity", "temperature", "features", "dim"], () => {
      const dim = model.get("dim"), patch = model.get("patch"), weights = weigh(dim), bright = dim ? weigh(false) : weights;
      const on = (mask) => weights.reduce((sum, w, i) => sum + (mask[i] ? w : 0), 0);
      const largest = Math.max(...weights);
      const numbers = { weights, sky: on(sky), right: on(right), moved: weights.reduce((sum, w, i) => sum + Math.abs(w - bright[i]), 0) / 2 };

      const width = ui.room(720), height = (width * ROWS) / COLUMNS, cell = width / COLUMNS;
      picture.style.width = `${width}px`;
      picture.style.height = `${height}px`;
      shade.style.display = dim ? "" : "none";
      kit.paint(layer, weights, COLUMNS, (w) => [...tint(Math.sqrt(w / largest)), 166]); // 166 of 255: 65 %
      // A ring around the patch that asks, never smaller than 16 px: white within black, seen on anything.
      const side = Math.max(cell, 16), x = ((patch % COLUMNS) + 0.5) * cell - side / 2, y = (Math.floor(patch / COLUMNS) + 0.5) * cell - side / 2;
      const ring = (stroke, thick) => svg("rect", { x, y, width: side, height: side, rx: 2, fill: "none", stroke, "stroke-width": thick, "pointer-events": "none" });
      marks.setAttribute("viewBox", `0 0 ${width} ${height}`);
      marks.replaceChildren(ring("#000", 5), ring("#fff", 2.5));
      most.textContent = number(largest, 4);
      means.textContent = `weights = softmax(${formula[model.get("similarity")]} ÷ ${Number(model.get("temperature").toPrecision(3))})`;
      tell();

      const percent = (share) => `${number(100 * share, 0)}\u00a0%`;
      ui.show(numbers,
        `${sky[patch] ? "A patch of sky" : "A patch"} in ${place(patch)} asks. ${percent(numbers.sky)} of its weight lies on the sky, which is ${percent(sky.filter(Boolean).length / COUNT)} of the picture. `
        + (dim ? `Half light on the right moved ${percent(numbers.moved)} of the weight.` : `The largest weight is ${number(largest * COUNT, 1)} times an even share.`));
    });
    return ui.stop;
  },
};
