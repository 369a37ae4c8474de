// Which pictures fit: what attention keeps and multiplies. The same in Python: lib/widgets/cost.py, counted by lib/cost.py.
const SIDES = [128, 256, 512, 1024, 2048, 4096].flatMap((s) => [s, 1.25 * s, 1.5 * s, 1.75 * s]).concat(8192);
const LOOK = `
  .bill { width: 100%; max-width: 38rem; }
  .bill th:first-child { text-align: left; padding-left: 0; color: var(--ink); white-space: nowrap; }
  .bill td { white-space: nowrap; }
  .bill thead th { vertical-align: bottom; line-height: 1.25; }
  .bill svg { display: inline-block; margin-right: 0.4rem; vertical-align: middle; }
  .bill .over { font-weight: 650; }
  .plate { cursor: ew-resize; touch-action: pan-y; }`;
// What a way keeps beside query, key, value and output, in numbers a head, and how often it multiplies for each number of a query.
const WAYS = [
  { name: "tables", colour: "var(--orange)", dash: "", more: (n) => n * n, times: (n) => 6 * n },
  { name: "tiles", colour: "var(--blue)", dash: "9 4", more: (n) => n, times: (n) => 7 * n },
  { name: "windows", colour: "var(--green)", dash: "9 3 2 3", more: (n, d, w) => n * Math.min(n, w * w), times: (n, d, w) => 6 * Math.min(n, w * w) },
  { name: "linear", colour: "var(--pink)", dash: "2 3", more: (n, d) => 7 * n * d + d * d + d + n, times: (n, d) => 3 * (2 * d + 1) },
];
// The side of the largest square grid whose cost is within the limit.
const largestGrid = (cost, limit) => {
  let fits = 0, tooLarge = 1;
  while (cost(tooLarge ** 2) <= limit) { fits = tooLarge; tooLarge *= 2; }
  while (tooLarge - fits > 1) {
    const middle = Math.floor((fits + tooLarge) / 2);
    if (cost(middle ** 2) <= limit) fits = middle; else tooLarge = middle;
  }
  return fits;
};
const power = (exponent) => [...String(exponent)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]).join("");

export default {
  render({ model, el }) {
    const { svg, html, number } = kit;
    const TRAITS = ["side", "patch", "heads", "dim", "window", "bytes", "budget", "layers"];
    const whole = (x) => x.toLocaleString("en-GB");
    const few = (x) => (x < 10 ? number(x, x < 0.1 ? 3 : 2) : x < 100 ? number(x, 1) : whole(Math.round(x)));
    const counted = (x) => { // of 10⁹
      const e = Math.floor(Math.log10(x * 1e9) + 1e-9);
      return `${number((x * 1e9) / 10 ** e, 1)} × 10${power(e)}`;
    };
    const ui = kit.frame(model, el, {
      title: "Which pictures fit, and who does the most work?",
      help: "Make the picture larger, with the slider or by dragging in a plot, until a line crosses the memory there is. Tables are attention written plainly; tiles give the same output; windows and linear attention compute something else.",
      keep: TRAITS,
    });
    const options = (values, unit = "") => values.map((v) => [v, `${v}${unit}`]);
    ui.slider({ trait: "side", label: "picture side", values: SIDES, text: (v) => `${whole(v)} px` });
    ui.slider({ trait: "heads", label: "heads a layer", min: 1, max: 16 });
    ui.choice({ trait: "budget", label: "memory there is", options: options([2, 8, 24, 80], " GB") });
    ui.choice({ trait: "patch", label: "side of a patch, pixels", options: options([8, 16, 32]) });
    ui.choice({ trait: "window", label: "side of a window, patches", options: options([4, 8, 16]) });
    ui.choice({ trait: "dim", label: "numbers in a head", options: options([32, 64, 128]) });
    ui.choice({ trait: "bytes", label: "bytes a number", options: options([4, 2]) });
    ui.again();

    const LEFT = 50, RIGHT = 16, TOP = 22, HIGH = 190, BELOW = 44, HEIGHT = TOP + HIGH + BELOW, FIRST = Math.log2(SIDES[0]), OCTAVES = 6;
    const drawing = svg("svg", { role: "img", "aria-label": "Two plots on logarithmic axes against the side of the picture, memory and multiplications. The table below has their numbers." });
    const bill = html("table", { class: "bill" });
    ui.stage.append(html("style", {}, LOOK), drawing, bill);
    const plots = [
      { key: "memory", title: "memory kept for training", low: -2, high: 4, ticks: [[-2, "10 MB"], [0, "1 GB"], [2, "100 GB"], [4, "10 TB"]] },
      { key: "work", title: "multiplications in training", low: -1, high: 8, ticks: [[0, "10⁹"], [3, "10¹²"], [6, "10¹⁵"]] },
    ].map((plot) => {
      const clip = kit.fresh(), hole = svg("rect", { y: TOP, height: HIGH }), still = svg("g"), lines = svg("g", { "clip-path": `url(#${clip})` });
      const plate = svg("rect", { class: "plate", y: TOP, height: HIGH, fill: "transparent" });
      const choose = (event) => {
        const box = plate.getBoundingClientRect(), at = FIRST + (OCTAVES * (event.clientX - box.left)) / box.width;
        const side = SIDES.reduce((best, s) => (Math.abs(Math.log2(s) - at) < Math.abs(Math.log2(best) - at) ? s : best));
        if (side !== model.get("side")) ui.set("side", side);
      };
      plate.addEventListener("pointerdown", (event) => { plate.setPointerCapture(event.pointerId); choose(event); });
      plate.addEventListener("pointermove", (event) => { if (plate.hasPointerCapture(event.pointerId)) choose(event); });
      const group = svg("g", {}, svg("clipPath", { id: clip }, hole), still, lines, plate);
      drawing.append(group);
      return { ...plot, hole, still, lines, plate, group };
    });

    ui.draw(TRAITS, () => {
      const [side, patch, heads, dim, window, bytes, budget, layers] = TRAITS.map((trait) => model.get(trait));
      const memoryOf = (way, n) => (layers * bytes * heads * (4 * n * dim + way.more(n, dim, window))) / 1e9; // GB
      const workOf = (way, n) => (layers * heads * n * dim * way.times(n, dim, window)) / 1e9; // of 10⁹
      const besideOf = (n) => (layers * 36 * n * (heads * dim) ** 2) / 1e9;
      const tokens = (side / patch) ** 2, beside = besideOf(tokens), at = SIDES.indexOf(side);
      const lines = (cost) => WAYS.map((way) => SIDES.map((s) => cost(way, (s / patch) ** 2)));
      const memory_lines = lines(memoryOf), work_lines = lines(workOf);
      const memory = memory_lines.map((line) => line[at]), work = work_lines.map((line) => line[at]);
      const largest = WAYS.map((way) => patch * largestGrid((n) => memoryOf(way, n), budget));

      const room = ui.room(), beneath = room < 520, width = beneath ? room : (room - 24) / 2, across = width - LEFT - RIGHT;
      const toX = (s) => LEFT + ((Math.log2(s) - FIRST) / OCTAVES) * across;
      drawing.setAttribute("viewBox", `0 0 ${room} ${beneath ? 2 * HEIGHT : HEIGHT}`);
      drawing.setAttribute("width", room);
      plots.forEach((plot, i) => {
        const toY = (v) => TOP + ((plot.high - Math.log10(v)) / (plot.high - plot.low)) * HIGH;
        const path = (line) => `M ${line.map((v, k) => `${toX(SIDES[k]).toFixed(1)} ${toY(v).toFixed(1)}`).join(" L ")}`;
        plot.group.setAttribute("transform", beneath ? `translate(0 ${i * HEIGHT})` : `translate(${i * (width + 24)} 0)`);
        for (const rect of [plot.hole, plot.plate]) { rect.setAttribute("x", LEFT); rect.setAttribute("width", across); }
        plot.still.replaceChildren(
          svg("text", { x: 0, y: 12 }, plot.title),
          ...plot.ticks.flatMap(([t, text]) => [
            svg("line", { x1: LEFT, x2: LEFT + across, y1: toY(10 ** t), y2: toY(10 ** t), stroke: "var(--line)", "stroke-width": 0.4 }),
            svg("text", { x: LEFT - 5, y: toY(10 ** t) + 4, "text-anchor": "end", class: "soft" }, text)]),
          ...[128, 512, 2048, 8192].map((s) => svg("text", { x: toX(s), y: TOP + HIGH + 18, "text-anchor": "middle", class: "soft" }, whole(s))),
          svg("text", { x: LEFT + across / 2, y: TOP + HIGH + 35, "text-anchor": "middle", class: "soft" }, "side of the picture, pixels"));
        const values = { memory: memory_lines, work: work_lines }[plot.key], now = { memory, work }[plot.key];
        const dots = now.map((v, k) => svg("circle", { cx: toX(side), cy: toY(v), r: 4, fill: WAYS[k].colour, stroke: "var(--ground)", "stroke-width": 1.5 }));
        const extra = plot.key === "memory"
          ? [svg("line", { x1: LEFT, x2: LEFT + across, y1: toY(budget), y2: toY(budget), stroke: "var(--ink)", "stroke-width": 1 }),
            ...largest.map((s, k) => svg("circle", { cx: toX(s), cy: toY(budget), r: 3.5, fill: "var(--ground)", stroke: WAYS[k].colour, "stroke-width": 1.5 })),
            svg("text", { x: LEFT + 4, y: toY(budget) - 5, style: "paint-order: stroke", stroke: "var(--ground)", "stroke-width": 4 }, `${budget} GB`)]
          : [svg("path", { d: path(SIDES.map((s) => besideOf((s / patch) ** 2))), fill: "none", stroke: "var(--line)", "stroke-width": 5, "stroke-opacity": 0.6 })];
        const [behind, before] = plot.key === "memory" ? [extra.slice(0, 1), extra.slice(1)] : [extra, []]; // open circles stand on the lines
        plot.lines.replaceChildren(...behind,
          svg("line", { x1: toX(side), x2: toX(side), y1: TOP, y2: TOP + HIGH, stroke: "var(--ink)", "stroke-width": 1 }),
          ...values.map((line, k) => svg("path", { d: path(line), fill: "none", stroke: WAYS[k].colour, "stroke-width": 2, "stroke-dasharray": WAYS[k].dash })), ...before, ...dots);
      });

      const swatch = (colour, dash, wide = 2) => svg("svg", { width: 26, height: 8, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: 4, y2: 4, stroke: colour, "stroke-width": wide, "stroke-dasharray": dash, "stroke-opacity": wide > 2 ? 0.6 : 1 }));
      const row = (first, ...cells) => html("tr", {}, html("th", { scope: "row" }, ...first), ...cells.map((cell) => (cell instanceof Node ? cell : html("td", {}, cell))));
      bill.replaceChildren(
        html("thead", {}, html("tr", {}, ...["", "keeps, GB", "multiplies", `${budget} GB full at`].map((text) => html(text ? "th" : "td", text ? { scope: "col" } : {}, text)))),
        html("tbody", {}, ...WAYS.map((way, k) => row([swatch(way.colour, way.dash), way.name],
          html("td", { class: memory[k] > budget ? "over" : "" }, `${memory[k] > budget ? "✗" : "✓"} ${few(memory[k])}`), counted(work[k]), `${whole(largest[k])} px`)),
        row([swatch("var(--line)", "", 5), "all else"], "", counted(beside), "")));
      const over = WAYS.filter((_, k) => memory[k] > budget).map((way) => way.name);
      const fit = over.length === 0 ? "all four fit" : over.length === 4 ? "none of them fits" : `${over.join(" and ")} ${over.length === 1 && over[0] === "linear" ? "doesn't" : "don't"} fit`;
      ui.show({ tokens, memory, work, beside, largest, memory_lines, work_lines },
        `${whole(side)} pixels a side are ${whole(tokens)} patches. In training, attention in ${layers} layers keeps ${WAYS.map((way, k) => `${few(memory[k])} GB in ${way.name}`).join(", ").replace("in linear", "in linear form")}: of ${budget} GB, ${fit}. `
        + `Tables multiply ${few(work[0] / work[2])} times as often as windows, and ${few(work[0] / beside)} times as often as all else in the network.`);
    });
    return ui.stop;
  },
};
