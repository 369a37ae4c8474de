// Attention step by step, one cell at a time. The same in torch: lib/widgets/matrix_product.py.
const WORDS = ["cat", "kitten", "dog", "car"], FEATURES = ["legs", "wheels", "age"];
const ASKERS = 3, D = 2; // queries, numbers in a query
const STEPS = { scores: "Compare", scaled: "Scale", weights: "Share out", output: "Carry" };

export default {
  render({ model, el }) {
    const { html, svg, number } = kit;
    const ui = kit.frame(model, el, {
      title: "What stands in a cell of Q Kᵀ, and what becomes of it?",
      help: "Point at a number of Q Kᵀ, or move with the arrow keys: what it is made of lights up, and the sum is written out. Then take the next step.",
      keep: ["step", "query", "key", "feature"],
    });
    const numbers = Array.from(kit.unpack(model.get("numbers"))), cut = ASKERS * D, end = cut + WORDS.length * D;
    const Q = kit.rows(numbers.slice(0, cut), D), K = kit.rows(numbers.slice(cut, end), D), V = kit.rows(numbers.slice(end), FEATURES.length);
    const scores = kit.matmul(Q, kit.transpose(K)), scaled = scores.map((row) => row.map((s) => s / Math.sqrt(D)));
    const weights = scaled.map(kit.softmax), output = kit.matmul(weights, V);
    const tables = { scores, scaled, weights, output };

    ui.choice({ trait: "step", label: "step", options: Object.entries(STEPS) });
    ui.again();
    const drawing = svg("svg", {}), picture = svg("g"), plate = svg("rect", { fill: "transparent" });
    drawing.append(picture, plate);
    const worked = html("p", { style: "margin: 0; width: 100%; font-variant-numeric: tabular-nums; line-height: 1.6" });
    ui.stage.append(drawing, worked);

    const state = () => ({ step: model.get("step"), i: model.get("query"), j: model.get("key"), f: model.get("feature") });
    const carried = () => model.get("step") === "output";
    const tell = kit.picker(plate, {
      label: "The table of this step", hover: true, rows: ASKERS, columns: () => (carried() ? FEATURES : WORDS).length,
      get: () => [model.get("query"), model.get(carried() ? "feature" : "key")],
      set: (row, column) => {
        for (const [trait, value] of [["query", row], [carried() ? "feature" : "key", column]]) if (model.get(trait) !== value) ui.set(trait, value);
      },
      name: (row, column) => `${WORDS[row]} and ${(carried() ? FEATURES : WORDS)[column]}`,
    });

    // A matrix at x, y: its numbers one below the other by their points, brackets around it.
    const matrix = ({ x, y, w, h, values, digits, size, colour, soft, empty }) => {
      const tall = h * values.length, wide = w * values[0].length, text = values.map((row) => row.map((v) => (empty ? "" : number(v, digits))));
      const longest = Math.max(...text.flat().map((t) => t.length)), inset = Math.max(2, (w - 0.6 * size * longest) / 2);
      const bracket = (at, to) => svg("path", { d: `M ${at + to} ${y - 3} h ${-to} v ${tall + 6} h ${to}`, fill: "none", stroke: "var(--line)" });
      return [bracket(x - 4, 5), bracket(x + wide + 4, -5), ...text.flatMap((row, r) => row.flatMap((t, c) => {
        const fill = colour?.(values[r][c]);
        return [
          fill && svg("rect", { x: x + c * w + 0.5, y: y + r * h + 0.5, width: w - 1, height: h - 1, rx: 2, fill: kit.css(fill) }),
          svg("text", { x: x + (c + 1) * w - inset, y: y + r * h + h / 2 + 4.5, "text-anchor": "end", class: soft ? "soft" : null,
            style: `font-size: ${size}px; font-variant-numeric: tabular-nums${fill ? `; fill: ${kit.inkOn(fill)}` : ""}` }, t),
        ].filter(Boolean);
      }))];
    };
    const band = (x, y, width, height, colour) => svg("rect", { x, y, width, height, rx: 4, fill: `var(--${colour})`, "fill-opacity": 0.16, stroke: `var(--${colour})`, "stroke-width": 2 });
    const ring = (x, y, width, height, outer = "--ink") => [[outer, 5], ["--panel", 2]].map(([name, thick]) =>
      svg("rect", { x, y, width, height, rx: 3, fill: "none", stroke: `var(${name})`, "stroke-width": thick }));
    const label = (x, y, text, { anchor = "middle", strong = false, soft = false } = {}) =>
      svg("text", { x, y, "text-anchor": anchor, class: soft ? "soft" : null, "font-weight": strong ? 700 : null }, text);

    ui.draw(["step", "query", "key", "feature"], () => {
      const { step, i, j, f } = state(), carry = step === "output", multiplied = step === "scores" || step === "scaled";
      const room = ui.room(), all = room >= 520, n = WORDS.length, m = FEATURES.length; // on a phone one product at a time
      const size = all ? 13 : 12, h = 30, left = 48, gap = 18, after = all ? 84 : 36; // after: for the sums of rows
      const spare = Math.max(room, 320) - left - gap - 6;
      const wQ = all ? 46 : 34, w = all ? 48 : carry ? Math.floor((0.52 * spare) / n) : Math.floor((spare - D * wQ - after + 6) / n);
      const wV = all ? 52 : Math.floor((0.48 * spare) / m), top = 40 + (all || carry ? n : D) * h, y = top + 14; // the lower tables begin at y
      const xQ = left, x = all || !carry ? left + D * wQ + gap : left, xV = x + n * w + (all ? after : gap), below = y + ASKERS * h + 20;
      const reach = Math.max(...scores.flat().map(Math.abs)), parts = [];
      const columns = (x, w, y, names, chosen) => names.map((name, c) => label(x + (c + 0.5) * w, y, name, { strong: c === chosen, soft: c !== chosen }));
      const rows = (x, y, names, chosen) => names.map((name, r) => label(x - 11, y + r * h + h / 2 + 4, name, { anchor: "end", strong: r === chosen, soft: r !== chosen }));

      parts.push(...rows(left, y, WORDS.slice(0, ASKERS), i));
      if (all || !carry) {
        const yK = top - D * h;
        if (multiplied) parts.push(band(xQ, y + i * h, D * wQ, h, "blue"), band(x + j * w, yK, w, D * h, "orange"));
        parts.push(
          ...matrix({ x: xQ, y, w: wQ, h, values: Q, digits: 1, size, soft: !multiplied }), label(xQ + (wQ * D) / 2, below, "Q, who asks", { soft: !multiplied }),
          ...matrix({ x, y: yK, w, h, values: kit.transpose(K), digits: 1, size, soft: !multiplied }),
          label(x + (w * n) / 2, yK - 26, "Kᵀ, who is asked", { soft: !multiplied }), ...columns(x, w, yK - 9, WORDS, carry ? -1 : j));
      }
      const [values, digits, name, colour] = {
        scores: [scores, 1, "Q Kᵀ", (s) => kit.diverging(s / reach)],
        scaled: [scaled, 2, "Q Kᵀ / √2", (s) => kit.diverging(s / reach)],
      }[step] ?? [weights, 2, carry ? "weights" : "softmax of each row", kit.sequential];
      parts.push(...matrix({ x, y, w, h, values, digits, size, colour }), label(x + (w * n) / 2, below, name));
      if (step === "weights") {
        const at = x + n * w + 11, sums = weights.map((row) => row.reduce((a, b) => a + b, 0));
        parts.push(label(at, y - 8, "sum", { anchor: "start", soft: true }), ...sums.map((sum, r) =>
          label(at, y + r * h + h / 2 + 4, number(sum), { anchor: "start", strong: r === i, soft: r !== i })));
      }
      if (!multiplied) parts.push(...ring(x, y + i * h, n * w, h, "--blue"));
      if (all || carry) {
        const yV = top - n * h;
        if (carry) parts.push(band(xV + f * wV, yV, wV, n * h, "orange"));
        parts.push(
          ...matrix({ x: xV, y: yV, w: wV, h, values: V, digits: 0, size, soft: !carry }), ...columns(xV, wV, yV - 9, FEATURES, carry ? f : -1),
          label(xV + (wV * m) / 2, yV - 26, "V, what is carried", { soft: !carry }), ...rows(xV, yV, WORDS, -1),
          ...matrix({ x: xV, y, w: wV, h, values: output, digits: 2, size, empty: !carry }),
          label(xV + (wV * m) / 2, below, carry ? "output: weights · V" : "output", { soft: !carry }));
      }
      const [start, cell, count, column] = carry ? [xV, wV, m, f] : [x, w, n, j];
      parts.push(...ring(start + column * cell, y + i * h, cell, h));
      for (const [key, value] of Object.entries({ x: start, y, width: cell * count, height: ASKERS * h })) plate.setAttribute(key, value);
      picture.replaceChildren(...parts);
      const width = all ? xV + m * wV + 8 : Math.max(room, 320);
      for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${below + 8}`, width, height: below + 8 })) drawing.setAttribute(key, value);
      tell();

      // the sum in two lines, with what comes from the row in blue and what comes from the column in orange
      const asker = WORDS[i], asked = WORDS[j], feature = FEATURES[f];
      const trim = (v) => String(Math.round(v * 100) / 100).replace("-", "−");
      const signed = (v) => (v < 0 ? `(${trim(v)})` : trim(v));
      const whole = (...pieces) => html("span", { style: "white-space: nowrap" }, ...pieces);
      const product = (a, b) => whole(html("b", { style: "color: var(--blue)" }, a), " × ", html("b", { style: "color: var(--orange)" }, b));
      const e = (s, k) => whole(html(k === j ? "b" : "span", {}, "e", html("sup", { style: "line-height: 0" }, number(s))));
      const joined = (pieces) => pieces.flatMap((piece, k) => (k ? [" + ", piece] : [piece]));
      const low = (text) => html("sub", { style: "line-height: 0" }, text);
      const score = whole("q", low(asker), " · k", low(asked));
      const { terms, first, second, says } = {
        scores: () => ({
          terms: Q[i].map((q, c) => q * K[j][c]),
          first: [score, " = ", ...joined(Q[i].map((q, c) => product(signed(q), signed(K[j][c]))))],
          second: ["= ", ...joined(Q[i].map((q, c) => signed(q * K[j][c]))), ` = ${trim(scores[i][j])}`],
          says: `row ${i + 1} of Q is what ${asker} asks for, column ${j + 1} of Kᵀ is how ${asked} can be found. Their dot product is ${trim(scores[i][j])}`
            + `${scores[i][j] === Math.max(...scores[i]) ? `, the largest in the row of ${asker}` : ""}.`,
        }),
        scaled: () => ({
          terms: Q[i].map((q, c) => (q * K[j][c]) / Math.sqrt(D)),
          first: [score, " / √d = ", `${trim(scores[i][j])} / √2`],
          second: [`= ${number(scaled[i][j])}`],
          says: `a query has 2 numbers, so every score is divided by √2. That of ${asker} and ${asked} was ${trim(scores[i][j])} and is ${number(scaled[i][j])}. The order in a row stays, the differences shrink.`,
        }),
        weights: () => ({
          terms: scaled[i].map(Math.exp),
          first: [`A(${asker}, ${asked}) = `, e(scaled[i][j], j), " / (", ...joined(scaled[i].map(e)), ")"],
          second: [`= ${number(Math.exp(scaled[i][j]))} / (${scaled[i].map((s) => number(Math.exp(s))).join(" + ")}) = ${number(weights[i][j])}`],
          says: `softmax looks at the row of ${asker} and at nothing else: ${asked} gets ${number(weights[i][j])} of its weight. The row sums to 1, a column needn't.`,
        }),
        output: () => ({
          terms: weights[i].map((a, k) => a * V[k][f]),
          first: [`${feature} of ${asker} = `, ...joined(weights[i].map((a, k) => product(number(a), trim(V[k][f]))))],
          second: ["= ", ...joined(weights[i].map((a, k) => number(a * V[k][f]))), ` = ${number(output[i][f])}`],
          says: `${asker} gets ${number(output[i][f])} for ${feature}, the average of ${V.slice(0, -1).map((v) => v[f]).join(", ")} and ${V.at(-1)[f]} with the weights in its row.`,
        }),
      }[step]();
      worked.replaceChildren(...first, html("br"), ...second);
      worked.style.minHeight = all ? "3.2em" : "4.8em"; // so that little below jumps
      ui.show({ ...tables, terms, value: tables[step][i][column] }, `${STEPS[step]}: ${says}`);
    });
    return ui.stop;
  },
};
