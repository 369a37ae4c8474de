// Queries and keys, each turned and stretched. The same in torch: lib/widgets/query_key.py.
const SETS = { four: ["cat", "kitten", "dog", "car"], three: ["1", "2", "3"] }, REACH = 3.4;
const COLOURS = ["var(--blue)", "var(--orange)", "var(--green)", "var(--pink)"];
const TRAITS = ["words", "turn_query", "stretch_query", "turn_key", "stretch_key", "compare", "chosen"];

// words @ W: turned counter-clockwise by so many degrees, and stretched
const turned = ([x, y], degrees, stretch) => {
  const angle = degrees * Math.PI / 180, [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [stretch * (x * cos - y * sin), stretch * (x * sin + y * cos)];
};

const compute = (value, turnQuery, stretchQuery, turnKey, stretchKey) => {
  const query = value.map((w) => turned(w, turnQuery, stretchQuery)), key = value.map((w) => turned(w, turnKey, stretchKey));
  const scores = kit.matmul(query, kit.transpose(key)), back = kit.transpose(scores);
  const weights = scores.map(kit.softmax), slide = back.map(kit.softmax); // Q Kᵀ and K Qᵀ: softmax along a row in both
  const far = (a, b) => Math.max(...a.flatMap((row, i) => row.map((x, j) => Math.abs(x - b[i][j]))));
  const now = { query, key, scores, weights, new: kit.matmul(weights, value), weights_slide: slide, new_slide: kit.matmul(slide, value) };
  return { ...now, asymmetry: far(scores, back), difference: far(now.new, now.new_slide) };
};

export default {
  render({ model, el }) {
    const { svg, html, number } = kit;
    const ui = kit.frame(model, el, {
      title: model.get("compare") ? "Two orders: Q Kᵀ V and K Qᵀ V" : "What if asking and being found are two things?",
      help: "Turn and stretch the queries and the keys, with the sliders or by the ring (query) and the dot (key) of the chosen word. Where a query points along a key, the score is high.",
      keep: TRAITS,
    });
    const places = kit.rows(kit.unpack(model.get("places")), 2), sets = { four: places.slice(0, 4), three: places.slice(4) };
    const names = () => SETS[model.get("words")], value = () => sets[model.get("words")];
    const chosen = () => Math.min(model.get("chosen"), names().length - 1);
    const choose = (i) => { if (i !== model.get("chosen")) ui.set("chosen", i); };
    const preset = (traits) => { for (const [trait, v] of Object.entries(traits)) model.set(trait, v); model.save_changes(); };
    const point = ([x, y]) => `(${number(x)}, ${number(y)})`;

    for (const [what, label] of [["query", "queries"], ["key", "keys"]]) {
      ui.slider({ trait: `turn_${what}`, label: `turn ${label}`, min: -180, max: 180, step: 5, text: (v) => `${number(v, 0)}°` });
      ui.slider({ trait: `stretch_${what}`, label: `stretch ${label}`, min: 0, max: 1.5, step: 0.05, text: (v) => number(v) });
    }
    ui.choice({ trait: "words", label: "words", options: [["four", "cat, kitten, dog, car"], ["three", "1, 2, 3 in a circle"]] });
    ui.button("One map for both", () => preset({ turn_query: model.get("turn_key"), stretch_query: model.get("stretch_key") }));
    ui.button("Cycle 1 → 2 → 3 → 1", () => preset({ words: "three", turn_query: -120, stretch_query: 1.5, turn_key: 0, stretch_key: 1 }));
    ui.tick({ trait: "compare", label: "K Qᵀ V as well" });
    ui.again();

    const plane = kit.plane(REACH, "Queries and keys in the plane");
    const legend = html("p", { class: "legend" },
      html("span", {}, svg("svg", { width: 30, height: 12 }, svg("path", { d: "M 1 6 H 18", stroke: "var(--soft)", "stroke-width": 2.5 }), svg("path", { d: "M 28 6 l -11 -5 v 10 z", fill: "var(--soft)" })), "key: as what it is found"),
      html("span", {}, svg("svg", { width: 30, height: 12 }, svg("path", { d: "M 1 6 H 17", stroke: "var(--soft)", "stroke-width": 2, "stroke-dasharray": "5 4" }), svg("path", { d: "M 28 6 l -11 -5 v 10 z", fill: "none", stroke: "var(--soft)", "stroke-width": 1.5 })), "query: what it looks for"));
    const left = html("div", {}, plane.drawing, legend);
    const scores = kit.matrix("Scores q · k", { choose }), field = kit.matrix("Q Kᵀ V: weights", { rows: "receives", columns: "gives", last: "becomes" });
    const slide = kit.matrix("K Qᵀ V: weights", { rows: "receives", columns: "gives", last: "becomes" });
    const slideBox = html("div", { class: "wide" }, slide.table);
    ui.stage.append(left, html("div", { class: "tables" }, html("div", { class: "wide" }, scores.table), html("div", { class: "wide" }, field.table), slideBox));

    // Taking hold of the chosen word's query or key turns and stretches the map that made it, and so all the others.
    const grip = (what, label, look) => {
      const knob = svg("g", {}, svg("circle", { r: 15, fill: "transparent" }), svg("circle", { class: "halo", r: 11, fill: "var(--ink)" }), svg("circle", look));
      const get = () => turned(value()[chosen()], model.get(`turn_${what}`), model.get(`stretch_${what}`));
      const set = ([x, y]) => {
        const [wx, wy] = value()[chosen()], length = Math.hypot(x, y);
        let angle = Math.round((Math.atan2(y, x) - Math.atan2(wy, wx)) * 180 / Math.PI);
        angle -= 360 * Math.round(angle / 360);
        const stretch = Math.round(20 * kit.clamp(length / Math.hypot(wx, wy), 0, 1.5)) / 20;
        preset({ ...(length > 0.02 ? { [`turn_${what}`]: angle } : {}), [`stretch_${what}`]: stretch });
      };
      plane.grips.append(knob);
      return { knob, get, tell: kit.handle(knob, { label, get, set, toData: plane.toData, low: -REACH, high: REACH }) };
    };
    const grips = [grip("key", "the chosen word's key; all keys follow", { r: 4, fill: "var(--ink)" }),
      grip("query", "the chosen word's query; all queries follow", { r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 2 })];

    const looksAt = (row, i) => {
      const top = Math.max(...row), best = row.flatMap((w, j) => (w >= top - 1e-6 ? [j] : []));
      if (best.length > 1) return best.length === row.length ? "nobody in particular" : best.map((j) => names()[j]).join(" and ");
      return best[0] === i ? "itself" : names()[best[0]];
    };

    ui.draw(TRAITS, () => {
      const words = names(), c = chosen();
      const now = compute(value(), ...["turn_query", "stretch_query", "turn_key", "stretch_key"].map((trait) => model.get(trait)));
      const room = ui.room(680), narrow = room < 560, size = narrow ? room : 290;
      plane.resize(size);
      left.style.width = `${size}px`;
      const faint = (i) => (i === c ? 1 : 0.55);
      plane.layer.replaceChildren(
        ...now.key.map((k, i) => plane.arrow(k, COLOURS[i])),
        ...now.query.map((q, i) => plane.arrow(q, COLOURS[i], { hollow: true, width: i === c ? 2.5 : 1.5, opacity: faint(i) })),
        ...now.key.map((k, i) => plane.name(k, words[i], COLOURS[i])),
        plane.name(now.query[c], `${words[c]} asks`, COLOURS[c], { turn: 55, gap: 18 }));
      for (const { knob, get, tell } of grips) { knob.setAttribute("transform", `translate(${plane.at(get())})`); tell(); }

      const most = Math.max(...now.scores.flat().map(Math.abs)) || 1;
      let worst = [0, 0, 0];
      now.scores.forEach((row, i) => row.forEach((s, j) => { if (j > i && Math.abs(s - now.scores[j][i]) > worst[0]) worst = [Math.abs(s - now.scores[j][i]), i, j]; }));
      const [gap, i, j] = worst, even = gap < 5e-3;
      scores.update(words, now.scores, { colour: (s) => kit.diverging(s / most), chosen: c, marks: even ? [] : [[i, j], [j, i]] });
      field.update(words, now.weights, { colour: kit.sequential, chosen: c, ends: now.new.map(point) });
      const top = (row) => row.indexOf(Math.max(...row));
      const marks = words.flatMap((_, a) => (looksAt(now.weights[a], a) === looksAt(now.weights_slide[a], a) ? [] : [[a, top(now.weights_slide[a])]]));
      slideBox.hidden = !model.get("compare");
      slide.update(words, now.weights_slide, { colour: kit.sequential, chosen: c, marks, ends: now.new_slide.map(point) });

      const looks = words.map((word, a) => `${word} at ${looksAt(now.weights[a], a)}`).join(", ");
      const circle = words.length === 3 && [1, 2, 0].every((to, a) => looksAt(now.weights[a], a) === words[to]) ? ", a cycle" : "";
      ui.show(now, (even ? "The scores are symmetric: s(i, j) = s(j, i). " : `The scores aren't symmetric: ${words[i]} scores ${words[j]} with ${number(now.scores[i][j])}, ${words[j]} scores ${words[i]} with ${number(now.scores[j][i])}. `)
        + `Looks most: ${looks}${circle}; ${words[c]} becomes ${point(now.new[c])}.`
        + (model.get("compare") ? ` By K Qᵀ V it becomes ${point(now.new_slide[c])}; ${now.difference < 5e-3 ? "the two orders agree" : `outputs differ by up to ${number(now.difference)}${marks.length ? ", and who looks elsewhere is outlined" : ""}`}.` : ""));
    });
    return ui.stop;
  },
};
