// Words in the plane, to be dragged. The same in torch: lib/widgets/word_plane.py.
const NAMES = ["cat", "kitten", "dog", "car", "puppy", "bus"], REACH = 3;
const COLOURS = ["var(--blue)", "var(--orange)", "var(--green)", "var(--pink)", "var(--soft)", "var(--ink)"];
const KINDS = { dot: "dot product", cosine: "cosine", gaussian: "Gaussian" };

const unit = (v) => { const length = Math.hypot(...v); return length ? v.map((x) => x / length) : v; };
const distance = (a, b) => (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2;

const compute = (words, kind, normalisation, temperature) => {
  const pairs = (f) => words.map((a) => words.map((b) => f(a, b) / temperature));
  const scores = kind === "gaussian" ? pairs((a, b) => -distance(a, b)) : pairs(kind === "dot" ? kit.dot : (a, b) => kit.dot(unit(a), unit(b)));
  const similarity = kind === "gaussian" ? scores.map((row) => row.map(Math.exp)) : scores;
  const allowed = normalisation !== "by sum" || similarity.every((row) => row.every((s) => s > -1e-9));
  const bySum = (row) => { const kept = row.map((s) => Math.max(0, s)), sum = kept.reduce((a, b) => a + b); return kept.map((s) => (sum ? s / sum : 0)); };
  const weights = !allowed ? scores.map((row) => row.map(() => 0))
    : normalisation === "softmax" ? scores.map(kit.softmax)
      : normalisation === "by sum" ? similarity.map(bySum)
        : similarity.map((row) => row.map((s) => s / (normalisation === "by count" ? row.length : 1)));
  return { similarity, weights, new: kit.matmul(weights, words), allowed };
};

export default {
  render({ model, el }) {
    const { svg, html, number } = kit;
    const ui = kit.frame(model, el, {
      title: "What do the words make of each other?",
      help: "Drag a word by its tip, or move it with the arrow keys. The circles are what the words become: the sum of all words, each times its weight.",
      keep: ["vectors", "kind", "normalisation", "temperature", "chosen"],
    });
    const home = kit.rows(kit.unpack(model.get("home")), 2);
    const vectors = () => model.get("vectors"), chosen = () => Math.min(model.get("chosen"), vectors().length - 1);
    const choose = (i) => { if (i !== model.get("chosen")) ui.set("chosen", i); };
    const point = ([x, y]) => `(${number(x)}, ${number(y)})`;

    ui.choice({ trait: "kind", label: "similarity", options: Object.entries(KINDS) });
    ui.choice({ trait: "normalisation", label: "normalised", options: [["none", "not at all"], ["by count", "by count"], ["by sum", "by sum"], ["softmax", "softmax"]] });
    ui.slider({ trait: "temperature", label: "temperature", min: 0.1, max: 10, step: 0.1, text: (v) => number(v, 1) });
    const more = ui.button("Add a word", () => ui.set("vectors", [...vectors(), home[vectors().length]].slice(0, NAMES.length)));
    const fewer = ui.button("Remove one", () => ui.set("vectors", vectors().slice(0, Math.max(2, vectors().length - 1))));
    ui.again();

    const plane = kit.plane(REACH + 0.4, "The words in the plane");
    const table = kit.matrix("Weights", { choose });
    const legend = html("p", { class: "legend" },
      html("span", {}, svg("svg", { width: 26, height: 12 }, svg("path", { d: "M 1 6 H 18", stroke: "var(--soft)", "stroke-width": 2.5 }), svg("path", { d: "M 25 6 l -9 -4 v 8 z", fill: "var(--soft)" })), "a word"),
      html("span", {}, svg("svg", { width: 14, height: 14 }, svg("circle", { cx: 7, cy: 7, r: 5.5, fill: "none", stroke: "var(--soft)", "stroke-width": 2 })), "what it becomes"),
      html("span", {}, svg("svg", { width: 26, height: 12 }, svg("path", { d: "M 1 6 H 25", stroke: "var(--soft)", "stroke-width": 5, opacity: 0.35 })), "its weights: the wider, the more"));
    const left = html("div", {}, plane.drawing, legend);
    ui.stage.append(left, html("div", { class: "wide" }, table.table));

    const grips = NAMES.map((word, i) => {
      const grip = svg("g", { onfocus: () => choose(i), onpointerdown: () => choose(i) }, svg("circle", { r: 16, fill: "transparent" }), svg("circle", { class: "halo", r: 11, fill: COLOURS[i] }));
      const tell = kit.handle(grip, {
        label: `${word}, its place in the plane`, low: -REACH, high: REACH, toData: plane.toData,
        get: () => vectors()[i] ?? home[i], set: (to) => ui.set("vectors", vectors().map((v, j) => (j === i ? to : v))),
      });
      return { grip, tell };
    });

    // A new word beyond the edge is drawn on the edge, where the way to it leaves the plane.
    const inside = (v) => { const far = Math.max(...v.map(Math.abs)) / (REACH + 0.2); return far > 1 ? v.map((x) => x / far) : v; };

    ui.draw(["vectors", "kind", "normalisation", "temperature", "chosen"], () => {
      const words = vectors(), n = words.length, c = chosen(), names = NAMES.slice(0, n);
      const [kind, normalisation, temperature] = ["kind", "normalisation", "temperature"].map((trait) => model.get(trait));
      const { allowed, ...now } = compute(words, kind, normalisation, temperature);
      more.disabled = n === NAMES.length;
      fewer.disabled = n === 2;

      const room = ui.room(680), size = room < 560 ? room : 300;
      plane.resize(size);
      left.style.width = `${size}px`;
      const seen = now.new.map(inside), [cx, cy] = plane.at(seen[c]);
      const line = (from, to, look) => { const [[x1, y1], [x2, y2]] = [plane.at(from), plane.at(to)]; return svg("line", { x1, y1, x2, y2, ...look }); };
      const spokes = words.map((w, j) => line(seen[c], w, { stroke: COLOURS[j], "stroke-width": Math.min(14, 14 * Math.abs(now.weights[c][j])), opacity: 0.3, "stroke-dasharray": now.weights[c][j] < 0 ? "3 5" : null }));
      const ways = words.map((w, i) => line(w, seen[i], { stroke: COLOURS[i], "stroke-width": 1.5, "stroke-dasharray": "2 4" }));
      const rings = seen.map((v, i) => { const [x, y] = plane.at(v); return svg("circle", { cx: x, cy: y, r: i === c ? 7 : 5.5, fill: i === c ? "var(--panel)" : "none", stroke: COLOURS[i], "stroke-width": i === c ? 3 : 2 }); });
      const outside = Math.hypot(now.new[c][0] - seen[c][0], now.new[c][1] - seen[c][1]) > 1e-9;
      plane.layer.replaceChildren(
        ...(allowed ? spokes : []), ...words.map((w, i) => plane.arrow(w, COLOURS[i])),
        ...(allowed ? [...ways, ...rings.filter((_, i) => i !== c), rings[c]] : []),
        ...words.map((w, i) => plane.name(w, names[i], COLOURS[i])),
        ...(allowed ? [plane.name(seen[c], outside ? `${names[c]}′ ${point(now.new[c])}` : `${names[c]}′`, COLOURS[c], { turn: 65, gap: 20 })] : []));
      // put in anew only if their number changed: what is taken out loses its focus and the finger that drags it
      if (plane.grips.childElementCount !== n) plane.grips.replaceChildren(...grips.slice(0, n).map(({ grip }) => grip));
      grips.slice(0, n).forEach(({ grip, tell }, i) => { grip.setAttribute("transform", `translate(${plane.at(words[i])})`); tell(); });

      const most = Math.max(...now.weights.flat().map(Math.abs)), negative = now.weights.flat().some((w) => w < 0);
      const colour = negative ? (w) => kit.diverging(w / most) : (w) => kit.sequential(most ? w / Math.max(1, most) : 0);
      table.update(names, allowed ? now.weights : now.weights.map((row) => row.map(() => null)), { colour, chosen: c });

      const how = normalisation === "none" ? "not normalised" : normalisation;
      const sum = number(now.weights[c].reduce((a, b) => a + b));
      const [low, a, b] = now.similarity.flatMap((r, i) => r.map((s, j) => [s, names[i], names[j]])).reduce((one, other) => (other[0] < one[0] ? other : one));
      const row = now.weights[c].map((w, j) => `${number(w)} of ${j === c ? "itself" : names[j]}`).join(", ");
      ui.show(now, `${KINDS[kind]}, ${how}, temperature ${number(temperature, 1)}: `.replace(/^./, (letter) => letter.toUpperCase())
        + (allowed ? `${names[c]} takes ${row}, together ${sum}; from ${point(words[c])} it becomes ${point(now.new[c])}.`
          : `${a} and ${b} have ${number(low)}, a negative similarity. A sum with it may be 0 or less, and nobody can divide by that: move the words closer together, or normalise in another way.`));
    });
    return ui.stop;
  },
};
