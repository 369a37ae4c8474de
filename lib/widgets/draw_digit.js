// Draw a digit: the chapter's trained Vision Transformer, run here. The same in torch: lib/widgets/draw_digit.py.
const SIDE = 32, BLOCK = 4, SMALL = SIDE / BLOCK, PEN = 2; // PEN is a radius: a stroke about as thick as in the data

// ---- the paper: 32 × 32 bits in 256 hexadecimal digits -----------------------------------------------------------------
const toPixels = (text) => Uint8Array.from({ length: SIDE * SIDE }, (_, i) => (parseInt(text[i >> 2], 16) >> (3 - (i & 3))) & 1);
const toText = (pixels) => Array.from({ length: SIDE * SIDE / 4 }, (_, i) =>
  (8 * pixels[4 * i] + 4 * pixels[4 * i + 1] + 2 * pixels[4 * i + 2] + pixels[4 * i + 3]).toString(16)).join("");
const countInk = (pixels) => { // how many pixels are on in each block, 0 to 16
  const counts = new Float64Array(SMALL * SMALL);
  pixels.forEach((on, i) => { counts[SMALL * Math.floor(i / SIDE / BLOCK) + Math.floor((i % SIDE) / BLOCK)] += on; });
  return counts;
};
// Ink, or its removal, wherever a disc touches that moves straight from a to b.
const stroke = (pixels, [ax, ay], [bx, by], ink) => {
  const dx = bx - ax, dy = by - ay, length = dx * dx + dy * dy;
  for (let i = 0; i < SIDE * SIDE; i++) {
    const x = (i % SIDE) + 0.5 - ax, y = Math.floor(i / SIDE) + 0.5 - ay;
    const t = length ? kit.clamp((x * dx + y * dy) / length, 0, 1) : 0;
    if (Math.hypot(x - t * dx, y - t * dy) <= PEN) pixels[i] = ink;
  }
};
// The ink as one path of horizontal runs, and the line around it.
const inkPath = (pixels) => {
  let path = "";
  for (let y = 0; y < SIDE; y++) for (let x = 0; x < SIDE; x++) {
    const start = x;
    while (x < SIDE && pixels[SIDE * y + x]) x++;
    if (x > start) path += `M${start} ${y}h${x - start}v1h${start - x}z`;
  }
  return path;
};
const outline = (pixels) => {
  let path = "";
  const walk = (differ, piece) => {
    for (let line = 1; line < SIDE; line++) for (let i = 0; i < SIDE; i++) {
      const start = i;
      while (i < SIDE && differ(line, i)) i++;
      if (i > start) path += piece(line, start, i);
    }
  };
  walk((y, x) => pixels[SIDE * (y - 1) + x] !== pixels[SIDE * y + x], (y, from, to) => `M${from} ${y}H${to}`);
  walk((x, y) => pixels[SIDE * y + x - 1] !== pixels[SIDE * y + x], (x, from, to) => `M${x} ${from}V${to}`);
  return path;
};

// ---- the network: lib.vit, a token is a Float64Array -------------------------------------------------------------------
// erf by its series of positive terms, 2/√π e^(−x²) Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1)): exact to the last digits or so.
const erf = (x) => {
  if (Math.abs(x) > 6) return Math.sign(x); // 1 − erf(6) is 2e-17
  let term = x, sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) { term *= (2 * x * x) / (2 * n + 1); sum += term; }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
};
const gelu = (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2));
const linear = (weight, bias) => (x) => {
  const y = new Float64Array(bias.length), n = x.length;
  for (let o = 0; o < y.length; o++) {
    let sum = bias[o];
    for (let i = 0; i < n; i++) sum += weight[o * n + i] * x[i];
    y[o] = sum;
  }
  return y;
};
const layerNorm = (gain, bias, eps) => (x) => {
  const mean = x.reduce((a, b) => a + b, 0) / x.length;
  const spread = Math.sqrt(x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length + eps);
  return x.map((v, i) => ((v - mean) / spread) * gain[i] + bias[i]);
};
const add = (tokens, found) => tokens.map((x, i) => x.map((v, j) => v + found[i][j]));

const makeNetwork = ({ patch, heads, eps, parts }, numbers) => {
  const part = {};
  let at = 0;
  for (const [name, ...size] of parts) part[name] = numbers.subarray(at, at += size.reduce((a, b) => a * b, 1));
  const map = (name) => linear(part[`${name}.weight`], part[`${name}.bias`]);
  const norm = (name) => layerNorm(part[`${name}.weight`], part[`${name}.bias`], eps);
  const embed = map("embed"), last = norm("norm"), answer = map("answer"), blocks = [], grid = SMALL / patch;
  for (let b = 0; part[`blocks.${b}.mlp.0.weight`]; b++) {
    const of = `blocks.${b}.`;
    blocks.push({ seen: norm(`${of}norm_attention`), thought: norm(`${of}norm_mlp`), wide: map(`${of}mlp.0`), narrow: map(`${of}mlp.2`),
      query: map(`${of}attention.query`), key: map(`${of}attention.key`), value: map(`${of}attention.value`), output: map(`${of}attention.output`) });
  }
  const attend = ({ query, key, value, output }, tokens) => {
    const [q, k, v] = [query, key, value].map((project) => tokens.map(project));
    const found = q.map((x) => new Float64Array(x.length)), width = q[0].length / heads;
    const weights = Array.from({ length: heads }, (_, h) => q.map((asks, i) => {
      const scores = k.map((has) => {
        let sum = 0;
        for (let d = h * width; d < (h + 1) * width; d++) sum += asks[d] * has[d];
        return sum / Math.sqrt(width);
      });
      const row = kit.softmax(scores);
      row.forEach((w, j) => { for (let d = h * width; d < (h + 1) * width; d++) found[i][d] += w * v[j][d]; });
      return row;
    }));
    return [found.map(output), weights];
  };
  // image: 8 × 8 numbers from 0 to 1. Gives the logits, and for each layer the weights of each head.
  const look = (image) => {
    const codes = part["positions.codes"], weights = [];
    let tokens = Array.from({ length: grid * grid }, (_, t) => {
      const y = Math.floor(t / grid) * patch, x = (t % grid) * patch;
      const token = embed(Float64Array.from({ length: patch * patch }, (_, i) => image[SMALL * (y + Math.floor(i / patch)) + x + (i % patch)]));
      return codes ? token.map((v, d) => v + codes[t * token.length + d]) : token;
    });
    for (const block of blocks) {
      const [found, ofBlock] = attend(block, tokens.map(block.seen));
      tokens = add(tokens, found);
      tokens = add(tokens, tokens.map((x) => block.narrow(block.wide(block.thought(x)).map(gelu))));
      weights.push(ofBlock);
    }
    tokens = tokens.map(last);
    return { logits: Array.from(answer(tokens[0].map((_, d) => tokens.reduce((sum, x) => sum + x[d], 0) / tokens.length))), weights };
  };
  return { look, grid, patch };
};

export default {
  render({ model, el }) {
    const { svg, html, number } = kit;
    const ui = kit.frame(model, el, {
      title: "Draw a digit: what does the network say, and where does it look?",
      help: "Draw large, between the dashed lines, or change an example. Click a patch of the small picture to let it ask. Keys on the paper: arrows move the pen (Shift: faster), Space puts it down or lifts it, Delete clears.",
      keep: ["drawing", "query", "every", "tool"],
    });
    const net = makeNetwork(JSON.parse(model.get("shape")), kit.unpack(model.get("parameters"), "f2"));
    const examples = JSON.parse(model.get("examples")), { grid, patch } = net, CELL = SIDE / grid; // of a patch, on paper
    const asks = () => Math.min(model.get("query"), grid * grid - 1);
    const place = (t) => `row ${Math.floor(t / grid) + 1}, column ${(t % grid) + 1}`;

    ui.stage.append(html("style", {}, `
      .part { display: flex; flex-direction: column; gap: 0.25rem; } .part p { margin: 0; font-size: 0.8rem; color: var(--soft); }
      .part p b { color: var(--ink); font-weight: 600; } .sheet { background: var(--panel); } .paper { cursor: crosshair; touch-action: none; }
      .row, .between { display: flex; flex-wrap: wrap; gap: 0.25rem; } .row button { flex: 1 1 1.55rem; max-width: 1.9rem; padding: 0; justify-content: center; }
      .between { width: 100%; justify-content: space-between; align-items: center; } .tabular { font-variant-numeric: tabular-nums; }
      .sheet:focus:not(:focus-visible) { outline: none; }`)); // Chromium rings a clicked svg in black

    // ---- controls ----
    const blank = () => ui.set("drawing", toText(new Uint8Array(SIDE * SIDE)));
    const tools = ui.choice({ trait: "tool", label: "pen", options: [["draw", "draw"], ["erase", "erase"]] });
    tools.lastChild.append(html("button", { type: "button", onclick: blank }, "Clear"));
    ui.controls.append(html("fieldset", { class: "control", style: "flex-basis: 20.5rem" },
      html("legend", {}, "example (the network hasn't seen it)"),
      html("div", { class: "row" },
        ...examples.map((text, k) => html("button", { type: "button", "aria-label": `example ${k}`, onclick: () => ui.set("drawing", text) }, String(k))))));
    ui.again();

    // ---- the paper ----
    const drawn = svg("path", { fill: "var(--ink)", "shape-rendering": "crispEdges" });
    const pen = svg("circle", { r: PEN, stroke: "var(--accent)", "stroke-width": 0.5, visibility: "hidden" });
    const lines = (step) => Array.from({ length: SIDE / step - 1 }, (_, i) => `M${(i + 1) * step} 0V${SIDE}M0 ${(i + 1) * step}H${SIDE}`).join("");
    const grey = { fill: "none", stroke: "var(--line)", "vector-effect": "non-scaling-stroke" };
    const frame = () => svg("rect", { width: SIDE, height: SIDE, ...grey });
    const paper = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "sheet paper", tabindex: 0, role: "application", "aria-roledescription": "paper to draw on" },
      svg("path", { d: lines(BLOCK), ...grey, "stroke-width": 0.4 }), drawn,
      svg("path", { d: `M${BLOCK} 0V${SIDE}M${SIDE - BLOCK} 0V${SIDE}`, ...grey, stroke: "var(--accent)", "stroke-dasharray": "4 4" }), frame(), pen);
    let at = [SIDE / 2, SIDE / 2], down = false;
    const tellPen = () => {
      pen.setAttribute("cx", at[0]);
      pen.setAttribute("cy", at[1]);
      pen.setAttribute("fill", down ? "var(--accent)" : "none");
      paper.setAttribute("aria-label", `Paper of ${SIDE} by ${SIDE} pixels. The pen is ${down ? "down" : "lifted"}, ${number(at[0], 0)} from the left, ${number(at[1], 0)} from the top. Arrow keys move it, Space puts it down or lifts it, Delete clears.`);
    };
    const line = (from, to) => {
      const pixels = toPixels(model.get("drawing"));
      stroke(pixels, from, to, model.get("tool") === "draw" ? 1 : 0);
      const text = toText(pixels);
      if (text !== model.get("drawing")) ui.set("drawing", text);
    };
    const point = (event) => {
      const box = paper.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
    };
    paper.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !event.isPrimary) return;
      event.preventDefault(); // no text gets selected
      paper.setPointerCapture(event.pointerId);
      paper.focus({ preventScroll: true });
      pen.setAttribute("visibility", "hidden");
      at = point(event);
      line(at, at);
    });
    paper.addEventListener("pointermove", (event) => {
      if (!paper.hasPointerCapture(event.pointerId)) return;
      const to = point(event);
      line(at, to);
      at = to;
    });
    // A quick stroke is no fling: else Chromium swallows the next tap, wherever it goes.
    paper.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    paper.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const by = event.shiftKey ? BLOCK : 1, before = at;
      const move = { ArrowUp: [0, -by], ArrowDown: [0, by], ArrowLeft: [-by, 0], ArrowRight: [by, 0] }[event.key];
      if (move) at = at.map((v, i) => kit.clamp(Math.round(v) + move[i], 0, SIDE));
      else if (event.key === " ") down = !down;
      else if (event.key === "Delete" || event.key === "Backspace") blank();
      else return;
      event.preventDefault();
      event.stopPropagation(); // in Jupyter these keys mean something else
      if (down && event.key !== "Delete" && event.key !== "Backspace") line(before, at);
      pen.setAttribute("visibility", "visible");
      tellPen();
    });
    paper.addEventListener("focus", () => { if (paper.matches(":focus-visible")) pen.setAttribute("visibility", "visible"); });
    paper.addEventListener("blur", () => { down = false; pen.setAttribute("visibility", "hidden"); tellPen(); });
    tellPen();

    // ---- what the network gets, with the patch that asks ----
    const cells = Array.from({ length: SMALL * SMALL }, (_, i) =>
      svg("rect", { x: (i % SMALL) * BLOCK, y: Math.floor(i / SMALL) * BLOCK, width: BLOCK, height: BLOCK, fill: "var(--ink)", "shape-rendering": "crispEdges" }));
    const asking = svg("rect", { width: CELL, height: CELL, fill: "none", stroke: "var(--orange)", "stroke-width": 3, "vector-effect": "non-scaling-stroke" });
    const small = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "sheet" }, ...cells, svg("path", { d: lines(CELL), ...grey }), frame(), asking);
    const tellPatch = kit.picker(small, {
      rows: grid, columns: grid, label: "The picture in patches",
      get: () => [Math.floor(asks() / grid), asks() % grid],
      set: (r, c) => { ui.set("query", r * grid + c); ui.set("every", false); },
      name: (r, c) => `${place(r * grid + c)}${model.get("every") ? ", one of all" : ""}`,
    });

    // ---- the answer, and the maps ----
    const bars = svg("svg", { role: "img" }), groups = html("div", { style: "display: flex; flex-wrap: wrap; gap: 0.6rem 1.5rem; width: 100%" });
    const asksText = html("span", { style: "font-weight: 600" }), most = html("span", { class: "tabular" }), ramp = html("canvas", { style: "width: 6rem; height: 0.8rem", "aria-hidden": "true" });
    kit.paint(ramp, Array.from({ length: 64 }, (_, i) => i / 63), 64, kit.sequential);
    const part = (caption, ...children) => html("div", { class: "part" }, html("p", {}, caption), ...children);
    const hint = html("p", {}, `${grid * grid} patches of ${patch}\u00a0×\u00a0${patch}. Click one: where does it look?`);
    const upper = [part(`draw here: ${SIDE} × ${SIDE}`, paper), part(`counted: ${SMALL} × ${SMALL}`, small, hint), part("the answer", bars)];
    ui.stage.append(...upper,
      html("div", { class: "between" }, asksText, ui.tick({ trait: "every", label: "let all patches ask" })), groups,
      html("div", { class: "part" }, html("p", { style: "display: flex; gap: 0.4rem; align-items: center; flex-wrap: wrap" }, "weight 0", ramp, most, "The number under a map is its largest weight.")));

    ui.draw(["drawing", "query", "every"], () => {
      const pixels = toPixels(model.get("drawing")), counts = countInk(pixels), query = asks(), every = model.get("every");
      const { logits, weights } = net.look(counts.map((c) => c / BLOCK ** 2));
      const probabilities = kit.softmax(logits);
      const maps = weights.map((layer) => layer.map((head) => (every ? head[0].map((_, j) => head.reduce((sum, row) => sum + row[j], 0) / head.length) : head[query])));

      // sizes in real pixels: side by side where there is room, else the answer below
      const width = ui.room(680), wide = width >= 560, big = wide ? 230 : Math.floor((width - 12) * 0.62), rest = wide ? 168 : width - 12 - big;
      drawn.setAttribute("d", inkPath(pixels));
      cells.forEach((cell, i) => cell.setAttribute("fill-opacity", counts[i] / BLOCK ** 2));
      asking.setAttribute("x", (query % grid) * CELL);
      asking.setAttribute("y", Math.floor(query / grid) * CELL);
      asking.setAttribute("visibility", every ? "hidden" : "visible");
      tellPatch();

      const order = probabilities.map((_, k) => k).sort((a, b) => probabilities[b] - probabilities[a]), [best, second] = order;
      const across = wide ? width - big - rest - 24 : width, widths = [big, rest, across], high = wide ? big : 190, step = high / probabilities.length, reach = across - 60;
      [paper, small, bars].forEach((drawing, i) => { drawing.setAttribute("width", widths[i]); upper[i].style.width = `${widths[i]}px`; });
      bars.setAttribute("height", high);
      bars.setAttribute("aria-label", `Probabilities: ${order.slice(0, 3).map((k) => `${k} ${number(probabilities[k])}`).join(", ")}.`);
      bars.replaceChildren(svg("path", { d: `M20 0V${high}`, stroke: "var(--line)" }), ...probabilities.flatMap((p, k) => {
        const weight = k === best ? { "font-weight": 700 } : {}, y = k * step;
        return [
          svg("text", { x: 12, y: y + step / 2 + 4, "text-anchor": "end", ...weight }, String(k)),
          svg("rect", { x: 20, y: y + 3, width: Math.max(0.5, reach * p), height: step - 6, fill: k === best ? "var(--orange)" : "var(--blue)" }),
          svg("text", { x: across - 2, y: y + step / 2 + 4, "text-anchor": "end", "font-variant-numeric": "tabular-nums", ...weight }, number(p)),
        ];
      }));

      const top = Math.max(...maps.flat(2)), heads = maps[0].length, half = wide && maps.length > 1 ? (width - 24) / 2 : width;
      const size = Math.floor(Math.min(120, (half - 8 * (heads - 1)) / heads)), around = outline(pixels);
      const thin = { fill: "none", "vector-effect": "non-scaling-stroke" }, square = { width: CELL, height: CELL };
      const corner = (j) => ({ x: (j % grid) * CELL, y: Math.floor(j / grid) * CELL });
      const picture = (map, label) => svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, width: size, role: "img", "aria-label": label },
        ...map.map((w, j) => svg("rect", { ...corner(j), ...square, fill: kit.css(kit.sequential(w / top)), "shape-rendering": "crispEdges" })),
        svg("path", { d: around, stroke: "#000", "stroke-width": 2.5, "stroke-opacity": 0.4, ...thin }),
        svg("path", { d: around, stroke: "#fff", "stroke-width": 1, ...thin }),
        ...(every ? [] : [["#000", 4.5], ["#fff", 2]].map(([stroke, wide]) => svg("rect", { ...corner(query), ...square, ...thin, stroke, "stroke-width": wide }))));
      groups.replaceChildren(...maps.map((layer, l) => html("div", { class: "part", role: "group", "aria-label": `layer ${l + 1}` },
        html("p", {}, html("b", {}, `layer ${l + 1}`)),
        html("div", { style: "display: flex; flex-wrap: wrap; gap: 0.5rem" }, ...layer.map((map, h) => {
          const largest = Math.max(...map);
          return html("div", { class: "part", style: `width: ${size}px` },
            picture(map, `Layer ${l + 1}, head ${h + 1}: most at ${place(map.indexOf(largest))}, weight ${number(largest)}.`),
            html("p", { class: "between tabular", style: "font-size: 12px; gap: 0; flex-wrap: nowrap" }, html("span", {}, `head ${h + 1}`), html("span", {}, number(largest))));
        })))));
      asksText.textContent = every ? "Where all patches look, on average" : `Where the patch in ${place(query)} looks`;
      most.textContent = number(top);
      let sharpest = [0, 0, 0];
      maps.forEach((layer, l) => layer.forEach((map, h) => map.forEach((w, j) => { if (w === top) sharpest = [l, h, j]; })));
      const [l, h, j] = sharpest;
      ui.show({ logits, probabilities, weights, maps },
        `The network says ${best} with probability ${number(probabilities[best])}, then ${second} with ${number(probabilities[second])}. `
        + `${every ? "All patches ask" : `The patch in ${place(query)} asks`}: the largest weight, ${number(top)}, is that of head ${h + 1} in layer ${l + 1}, for the patch in ${place(j)}.`);
    });
    return ui.stop;
  },
};
