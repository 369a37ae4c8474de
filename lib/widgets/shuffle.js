// A picture and the puzzle of its patches. The same in torch: lib/widgets/shuffle.py.
const ROWS = 4, COLUMNS = 6, COUNT = ROWS * COLUMNS, SIDE = 36, SCALE = 0.6, WIDE = COLUMNS * SIDE, HIGH = ROWS * SIDE;

export default {
  render({ model, el }) {
    const { html, svg, number } = kit;
    const ui = kit.frame(model, el, {
      title: "Does attention notice the puzzle?",
      help: "Shuffle the patches, or swap two: drag one onto the other, or choose both (arrow keys, then Enter). Then give the tokens their positions.",
      keep: ["order", "positions", "chosen"],
    });

    // ---- the layer: queries and keys are the looks of the patches, values their pixels ----
    const bytes = kit.unpack(model.get("pixels"), "u1"), looks = kit.rows(kit.unpack(model.get("looks")), 12), dim = 12;
    const pixelOf = (i, c, y, x) => (c * HIGH + Math.floor(i / COLUMNS) * SIDE + y) * WIDE + (i % COLUMNS) * SIDE + x;
    const values = looks.map((_, i) => {
      const token = new Float64Array(3 * SIDE * SIDE);
      let at = 0;
      for (let c = 0; c < 3; c++) for (let y = 0; y < SIDE; y++) for (let x = 0; x < SIDE; x++) token[at++] = bytes[pixelOf(i, c, y, x)] / 255;
      return token;
    });
    // Waves: the first half of the numbers says the row, the second the column, as pairs of sine and cosine.
    const waves = (place) => Array.from({ length: dim / 2 }, (_, k) => (k % 2 ? Math.cos : Math.sin)(place * 10000 ** (-(k - (k % 2)) / (dim / 2))));
    const codes = looks.map((_, i) => [...waves(Math.floor(i / COLUMNS)), ...waves(i % COLUMNS)]);
    const layer = (order) => {
      const tokens = order.map((patch, i) => looks[patch].map((v, k) => v + (model.get("positions") ? codes[i][k] : 0)));
      const weights = kit.matmul(tokens, kit.transpose(tokens)).map((row) => kit.softmax(row.map((s) => SCALE * s)));
      const outputs = weights.map((row) => {
        const sum = new Float64Array(values[0].length);
        row.forEach((w, j) => { const value = values[order[j]]; for (let k = 0; k < sum.length; k++) sum[k] += w * value[k]; });
        return sum;
      });
      return { outputs, weights };
    };
    const back = (order, rows) => { const result = []; order.forEach((patch, i) => { result[patch] = rows[i]; }); return result; };
    const largest = (a, b) => a.reduce((most, v, k) => Math.max(most, Math.abs(v - b[k])), 0);
    const mean = (rows) => rows[0].map((_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);

    // ---- four pictures, two above two; the puzzle is the one to touch ----
    const over = "position: absolute; inset: 0; width: 100%; height: 100%; border-radius: 3px;";
    const panel = (text) => {
      const canvas = html("canvas", { width: WIDE, height: HIGH, "aria-hidden": "true", style: `${over} image-rendering: auto;` });
      const marks = svg("svg", { style: over, viewBox: `0 0 ${WIDE} ${HIGH}` });
      const box = html("div", { style: "position: relative;" }, canvas, marks);
      const caption = html("span", { style: "display: block; margin-bottom: 0.2rem; font-size: 0.8125rem;" }, text);
      return { canvas, marks, box, whole: html("div", {}, caption, box) };
    };
    const panels = [panel("the picture"), panel("the puzzle"), panel("its outputs"), panel("its outputs, put back")];
    const [original, puzzle, ofPicture, ofPuzzle] = panels;
    for (const { marks } of [original, ofPicture, ofPuzzle]) marks.setAttribute("aria-hidden", "true");
    const each = html("td"), pooled = html("td");
    for (const cell of [each, pooled]) cell.style.paddingRight = 0;
    const line = (text, cell) => html("tr", {}, html("th", { scope: "row", style: "text-align: left; padding-left: 0;" }, text), cell);
    const table = html("table", { style: "width: 100%;" },
      line("the outputs differ at most by", each), line("their means differ at most by", pooled));
    ui.stage.append(...panels.map(({ whole }) => whole), table);

    let held = -1, pressed = -1; // a place that waits for another; where the mouse went down
    const inOrder = () => Array.from({ length: COUNT }, (_, i) => i);
    ui.button("Shuffle", () => {
      const order = [...model.get("order")];
      for (let i = COUNT - 1; i > 0; i--) { const j = Math.floor(Math.random() * (i + 1)); [order[i], order[j]] = [order[j], order[i]]; }
      held = -1;
      ui.set("order", order);
    });
    ui.button("Put in order", () => { held = -1; ui.set("order", inOrder()); });
    ui.tick({ trait: "positions", label: "add positions to the tokens" });
    ui.again().addEventListener("click", () => { held = -1; ui.redraw(); });

    // ---- to swap: drag, or choose one place after the other ----
    const place = (i) => `row ${Math.floor(i / COLUMNS) + 1}, column ${(i % COLUMNS) + 1}`;
    const tell = kit.picker(puzzle.marks, {
      rows: ROWS, columns: COLUMNS, label: "Places of the puzzle. Enter takes a patch, and swaps it with a second one",
      get: () => [Math.floor(model.get("chosen") / COLUMNS), model.get("chosen") % COLUMNS],
      set: (r, c) => { if (model.get("chosen") !== r * COLUMNS + c) ui.set("chosen", r * COLUMNS + c); },
      name: (r, c) => place(r * COLUMNS + c),
    });
    const swap = (one, other) => {
      const order = [...model.get("order")];
      [order[one], order[other]] = [order[other], order[one]];
      held = -1;
      ui.set("order", order);
    };
    const take = () => {
      const here = model.get("chosen");
      if (held >= 0 && held !== here) return swap(held, here);
      held = held < 0 ? here : -1;
      ui.redraw();
    };
    puzzle.marks.addEventListener("pointerdown", ({ clientX, clientY }) => {
      const box = puzzle.marks.getBoundingClientRect();
      pressed = Math.floor(((clientY - box.top) / box.height) * ROWS) * COLUMNS + Math.floor(((clientX - box.left) / box.width) * COLUMNS);
    });
    puzzle.marks.addEventListener("click", () => {
      if (pressed >= 0 && pressed !== model.get("chosen")) swap(pressed, model.get("chosen"));
      else take();
      pressed = -1;
    });
    puzzle.marks.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      event.stopPropagation();
      take();
    });

    const paintPatches = (canvas, tokens) => {
      const context = canvas.getContext("2d"), image = context.createImageData(WIDE, HIGH), plane = SIDE * SIDE;
      image.data.fill(255);
      tokens.forEach((token, i) => {
        for (let y = 0; y < SIDE; y++) for (let x = 0; x < SIDE; x++) for (let c = 0; c < 3; c++) image.data[4 * pixelOf(i, 0, y, x) + c] = Math.round(255 * token[c * plane + y * SIDE + x]);
      });
      context.putImageData(image, 0, 0);
    };
    const ring = (i, dashes) => {
      const frame = (stroke, thick, dash) => svg("rect", { x: (i % COLUMNS) * SIDE + 2, y: Math.floor(i / COLUMNS) * SIDE + 2, width: SIDE - 4, height: SIDE - 4, rx: 2,
        fill: "none", stroke, "stroke-width": thick, "stroke-dasharray": dash, "vector-effect": "non-scaling-stroke", "pointer-events": "none" });
      return [frame("#000", 4.5), frame("#fff", 2, dashes ? "6 5" : null)];
    };

    ui.draw(["order", "positions", "chosen"], () => {
      const order = model.get("order"), chosen = model.get("chosen"), patch = order[chosen];
      const straight = layer(inOrder()), mixed = layer(order);
      const one = straight.outputs, other = back(order, mixed.outputs);
      const differences = one.map((row, i) => largest(row, other[i])), most = Math.max(...differences);
      const ofMean = largest(mean(one), mean(other));
      const weights = back(order, mixed.weights[chosen]);

      const gap = 12, width = Math.floor((ui.room(720) - gap) / 2);
      for (const { box, whole } of panels) { whole.style.width = `${width}px`; box.style.height = `${(width * ROWS) / COLUMNS}px`; }
      paintPatches(original.canvas, values);
      paintPatches(puzzle.canvas, order.map((i) => values[i]));
      paintPatches(ofPicture.canvas, one);
      paintPatches(ofPuzzle.canvas, other);
      puzzle.marks.replaceChildren(...(held >= 0 && held !== chosen ? ring(held, true) : []), ...ring(chosen, held === chosen));
      for (const { marks } of [original, ofPicture, ofPuzzle]) marks.replaceChildren(...ring(patch));
      each.textContent = number(most, 3);
      pooled.textContent = number(ofMean, 3);
      tell();

      const moved = order.filter((p, i) => p !== i).length, same = most < 1e-9;
      ui.show({ differences, mean: ofMean, weights },
        held >= 0 ? `The patch in ${place(held)} is taken. Choose another one, and the two change places.`
          : moved === 0 ? "Every patch stands where it belongs, so the puzzle is the picture: shuffle it."
          : `${moved} of ${COUNT} patches stand elsewhere; the tokens ${model.get("positions") ? "say where" : "don’t say where"}. `
            + (same ? "Put back in place, the outputs are the same, and so is their mean: the layer can’t tell the puzzle from the picture."
              : `Put back in place, outputs differ by up to ${number(most, 3)} of the way from black to white, and their means by ${number(ofMean, 3)}: the layer notices.`));
    });
    return ui.stop;
  },
};
