// What all interactive figures share in the browser: numbers, elements, controls bound to traits, the frame around them.
// Each figure's module follows this text; `STYLE` stands before it. No framework, no request.
const kit = (() => {
  // ---- numbers: a matrix is an array of rows; a row is a query, as in lib -------------------------------------------
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const transpose = (m) => m[0].map((_, j) => m.map((row) => row[j]));
  const matmul = (a, b) => { const columns = transpose(b); return a.map((row) => columns.map((column) => dot(row, column))); };
  const softmax = (scores) => {
    const top = Math.max(...scores); // no score overflows, and a row of one number stays finite
    const e = scores.map((x) => (x === -Infinity ? 0 : Math.exp(x - top))), sum = e.reduce((a, b) => a + b, 0);
    return e.map((x) => x / sum);
  };
  const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

  // Base64 of little-endian bytes, as lib.widgets._base.pack writes them: "f4", "f2" or "u1" to an array of numbers.
  const unpack = (text, kind = "f4") => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0)), view = new DataView(bytes.buffer);
    if (kind === "u1") return bytes;
    if (kind === "f4") return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
    return Float32Array.from({ length: bytes.length / 2 }, (_, i) => {
      const h = view.getUint16(2 * i, true), sign = h & 0x8000 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
      if (exponent === 0) return sign * fraction * 2 ** -24;
      if (exponent === 31) return fraction ? NaN : sign * Infinity;
      return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
    });
  };
  const rows = (flat, width) => Array.from({ length: flat.length / width }, (_, i) => Array.from(flat.slice(i * width, (i + 1) * width)));

  // ---- colours: the course's two colour maps, viridis from 0 to 1 and PuOr from -1 to 1 ------------------------------
  const ramp = (stops) => {
    const n = stops.length / 6, at = (i, c) => parseInt(stops.slice(6 * i + 2 * c, 6 * i + 2 * c + 2), 16);
    return (t) => {
      const x = clamp(t, 0, 1) * (n - 1), i = Math.min(n - 2, Math.floor(x)), f = x - i;
      return [0, 1, 2].map((c) => Math.round((1 - f) * at(i, c) + f * at(i + 1, c)));
    };
  };
  const sequential = ramp("440154481769472a7a433d843d4e8a355e8d2e6d8e297b8e23898e1f978b21a5852eb37c46c06f65cb5e89d548b0dd2fd8e219fde725");
  const signed = ramp("7f3b08974907b25706c96d0de08214ef9e3cfcb761fdcc8cfee0b6faecd7f6f6f7e8e9f1d8daebc5c2deb1aad1988dbe8073ac6a4c9a5326873f12682d004b");
  const diverging = (t) => signed((t + 1) / 2);
  const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;
  const light = (c) => { const x = c / 255; return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; };
  // A number on a coloured cell: black or white, whichever has the larger contrast (WCAG 2.2), which is never below 4.5.
  const inkOn = ([r, g, b]) => (0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b) > 0.179 ? "#000" : "#fff");

  // ---- elements -------------------------------------------------------------------------------------------------------
  const build = (make) => (tag, attributes = {}, ...children) => {
    const e = make(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
      else if (value === true) e.setAttribute(name, "");
      else if (value !== false && value != null) e.setAttribute(name, value);
    }
    e.append(...children);
    return e;
  };
  const html = build((tag) => document.createElement(tag));
  const svg = build((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
  const number = (x, digits = 2) => (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−");

  let count = 0;
  const fresh = () => `f${++count}`;

  // ---- the frame: title, help, controls, stage, the sentence that says what is there ------------------------------------
  // `title` and `help` are what a screen reader hears first; `keep` names the traits that "Start again" restores.
  const frame = (model, el, { title, help, keep = [] }) => {
    const shadow = el.shadowRoot ?? el.attachShadow({ mode: "open" });
    const ids = { title: fresh(), help: fresh() };
    const controls = html("div", { class: "controls" }), stage = html("div", { class: "stage" });
    const says = html("p", { class: "says", role: "status" });
    const root = html("section", { class: "figure", "aria-labelledby": ids.title, "aria-describedby": ids.help },
      html("p", { class: "title", id: ids.title }, title), html("p", { class: "help", id: ids.help }, help), controls, stage, says);
    shadow.replaceChildren(html("style", {}, STYLE), root);
    // A key that is pressed in here is meant for the figure: in Jupyter an arrow would move to another cell, a letter be a command.
    root.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey) event.stopPropagation(); });

    // JupyterLab takes arrows, Enter and single letters for itself, sliders' too: keys that are typed here stay here.
    root.addEventListener("keydown", (event) => {
      const leaves = event.ctrlKey || event.metaKey || event.altKey || event.key === "Escape" || (event.key === "Enter" && event.shiftKey);
      if (!leaves) event.stopPropagation();
    });

    const stops = [], drawings = [];
    const listen = (target, event, f) => { target.addEventListener(event, f); stops.push(() => target.removeEventListener(event, f)); };

    // The theme of whatever page this is, read from the colour of its text: works on the site, in Jupyter, Colab, VS Code.
    const readTheme = () => {
      if (!el.isConnected) return; // JupyterLab renders first and puts it into the page then: `resized` hears of it
      const [r, g, b] = getComputedStyle(el).color.match(/[\d.]+/g).map(Number);
      const theme = r + g + b > 384 ? "dark" : "light", changed = root.dataset.theme !== theme;
      root.dataset.theme = theme;
      if (changed) redraw();
    };
    const watcher = new MutationObserver(() => requestAnimationFrame(readTheme));
    for (const e of [document.documentElement, document.body]) watcher.observe(e, { attributes: true });
    stops.push(() => watcher.disconnect());
    listen(matchMedia("(prefers-color-scheme: dark)"), "change", readTheme);

    let asked = 0;
    const redraw = () => { asked ||= requestAnimationFrame(() => { asked = 0; for (const draw of drawings) draw(); }); };
    // How many CSS pixels a drawing may be wide: text in it then keeps its size, on a phone too.
    const room = (most = 640) => Math.floor(Math.min(most, stage.clientWidth || most));
    let before = 0;
    const resized = new ResizeObserver(() => { readTheme(); if (room(1e4) !== before) { before = room(1e4); redraw(); } });
    resized.observe(stage);
    stops.push(() => resized.disconnect());
    // Draw now, and again whenever one of these traits, the theme or the width changes.
    const draw = (traits, f) => {
      drawings.push(f);
      for (const trait of traits) { model.on(`change:${trait}`, redraw); stops.push(() => model.off(`change:${trait}`, redraw)); }
      f();
    };
    const set = (trait, value) => { model.set(trait, value); model.save_changes(); };

    // `numbers` is what the picture holds (for Python, and for whoever checks it); `sentence` is the picture in words.
    let sending, speaking;
    const show = (numbers, sentence) => {
      model.set("shown", numbers);
      clearTimeout(sending); sending = setTimeout(() => model.save_changes(), 80); // while you drag, a kernel needn't hear every step
      if (!says.textContent) says.textContent = sentence;
      clearTimeout(speaking); speaking = setTimeout(() => { says.textContent = sentence; }, 150); // nor a screen reader
    };

    const bound = (trait, update) => { model.on(`change:${trait}`, update); stops.push(() => model.off(`change:${trait}`, update)); update(); };
    // From `min` to `max`, or along a list of `values` where they aren't evenly spaced.
    const slider = ({ trait, label, min, max, step = 1, text = String, values }) => {
      const id = fresh(), out = html("span", { class: "value", "aria-hidden": "true" }); // the slider says it itself
      const toTrait = (at) => (values ? values[at] : at);
      const toPlace = (v) => (values ? values.reduce((best, x, i) => (Math.abs(x - v) < Math.abs(values[best] - v) ? i : best), 0) : v);
      const limits = values ? { min: 0, max: values.length - 1, step: 1 } : { min, max, step };
      const input = html("input", { type: "range", id, ...limits, oninput: () => set(trait, toTrait(Number(input.value))) });
      bound(trait, () => { const v = model.get(trait); input.value = toPlace(v); out.textContent = text(v); input.setAttribute("aria-valuetext", text(v)); });
      const box = html("div", { class: "control" }, html("label", { for: id }, label, out), input);
      controls.append(box);
      return box;
    };
    const choice = ({ trait, label, options }) => {
      const name = fresh();
      const inputs = options.map(([value]) => html("input", { type: "radio", name, value: String(value), onchange: () => set(trait, value) }));
      bound(trait, () => options.forEach(([value], i) => { inputs[i].checked = value === model.get(trait); }));
      const box = html("fieldset", { class: "control" }, html("legend", {}, label),
        html("div", { class: "options" }, ...options.map(([, text], i) => html("label", {}, inputs[i], text))));
      controls.append(box);
      return box;
    };
    const tick = ({ trait, label }) => {
      const input = html("input", { type: "checkbox", onchange: () => set(trait, input.checked) });
      bound(trait, () => { input.checked = model.get(trait); });
      const box = html("label", { class: "tick" }, input, label);
      controls.append(box);
      return box;
    };
    const button = (label, press) => { const b = html("button", { type: "button", onclick: press }, label); controls.append(b); return b; };

    const first = Object.fromEntries(keep.map((trait) => [trait, structuredClone(model.get(trait))]));
    const again = () => button("Start again", () => {
      for (const [trait, value] of Object.entries(first)) model.set(trait, structuredClone(value));
      model.save_changes();
    });

    readTheme();
    return { root, controls, stage, room, draw, redraw, set, show, slider, choice, tick, button, again,
      colour: (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim() || "#787878", // until it is in the page
      stop: () => { stops.forEach((f) => f()); shadow.replaceChildren(); } };
  };

  // ---- choosing a cell of a grid (a patch, a pixel, an entry of a matrix) by click, touch or arrow keys ------------------
  // `element` covers the grid exactly. `get()` gives [row, column], `set(row, column)` changes it, `name(row, column)` says it.
  const picker = (element, { rows, columns, label, get, set, name, hover = false }) => {
    const size = () => [typeof rows === "function" ? rows() : rows, typeof columns === "function" ? columns() : columns];
    for (const [key, value] of Object.entries({ tabindex: 0, role: "application", "aria-roledescription": "grid to choose from" })) element.setAttribute(key, value);
    element.classList.add("picker");
    const tell = () => element.setAttribute("aria-label", `${label}. Chosen: ${name(...get())}. Arrow keys move the choice.`);
    const choose = (r, c) => { const [n, m] = size(); set(clamp(r, 0, n - 1), clamp(c, 0, m - 1)); tell(); };
    const point = (event) => {
      const box = element.getBoundingClientRect(), [n, m] = size();
      choose(Math.floor(((event.clientY - box.top) / box.height) * n), Math.floor(((event.clientX - box.left) / box.width) * m));
    };
    element.addEventListener("click", point);
    element.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse" && (hover || event.buttons === 1)) point(event); });
    element.addEventListener("keydown", (event) => {
      const [r, c] = get(), [n, m] = size();
      const to = { ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1],
        Home: [r, 0], End: [r, m - 1], PageUp: [0, c], PageDown: [n - 1, c] }[event.key];
      if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      choose(...to);
    });
    tell();
    return tell; // call it when the choice was changed from elsewhere
  };

  // ---- a point that is dragged, or moved with the arrow keys (Shift: larger steps) ---------------------------------------
  // `element` is an SVG element; `toData(x, y)` turns a place on the screen into [x, y] of the plane.
  const handle = (element, { label, get, set, toData, step = 0.1, low = -Infinity, high = Infinity }) => {
    const range = { "aria-valuemin": Number.isFinite(low) ? low : -100, "aria-valuemax": Number.isFinite(high) ? high : 100 };
    for (const [key, value] of Object.entries({ tabindex: 0, role: "slider", "aria-label": label, "aria-roledescription": "point to move", ...range })) element.setAttribute(key, value);
    element.classList.add("draggable");
    const tell = () => {
      const [x, y] = get();
      element.setAttribute("aria-valuenow", x.toFixed(2));
      element.setAttribute("aria-valuetext", `${number(x)}, ${number(y)}`);
    };
    const move = ([x, y]) => { set([clamp(x, low, high), clamp(y, low, high)]); tell(); };
    element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); element.focus({ preventScroll: true }); event.preventDefault(); });
    element.addEventListener("pointermove", (event) => { if (element.hasPointerCapture(event.pointerId)) move(toData(event.clientX, event.clientY)); });
    element.addEventListener("keydown", (event) => {
      const by = step * (event.shiftKey ? 5 : 1), [x, y] = get();
      const to = { ArrowUp: [x, y + by], ArrowDown: [x, y - by], ArrowLeft: [x - by, y], ArrowRight: [x + by, y] }[event.key];
      if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      move(to.map((v) => Math.round(v * 1e6) / 1e6)); // 0.1 + 0.2 is 0.3 here
    });
    tell();
    return tell;
  };

  // ---- a square plane from -reach to reach: axes, arrows, and places to and fro -------------------------------------------
  // Draw into `layer` in pixels, `at([x, y])`; put handles into `grips`, which stay when the layer is drawn anew.
  const plane = (reach, label) => {
    const axes = svg("g", { "aria-hidden": "true" }), layer = svg("g", { "aria-hidden": "true" }), grips = svg("g");
    const drawing = svg("svg", { role: "group", "aria-label": label }, axes, layer, grips);
    let size = 0;
    const at = ([x, y]) => [(x / reach + 1) * size / 2, (1 - y / reach) * size / 2];
    const toData = (px, py) => {
      const box = drawing.getBoundingClientRect();
      return [((px - box.left) / box.width * 2 - 1) * reach, (1 - (py - box.top) / box.height * 2) * reach].map((v) => Math.round(v * 100) / 100);
    };
    const resize = (to) => {
      if (to === size) return;
      size = to;
      for (const [key, value] of Object.entries({ viewBox: `0 0 ${to} ${to}`, width: to, height: to })) drawing.setAttribute(key, value);
      const whole = Math.floor(reach), ticks = Array.from({ length: 2 * whole + 1 }, (_, i) => i - whole), middle = to / 2;
      axes.replaceChildren(
        svg("rect", { width: to, height: to, rx: 6, fill: "var(--panel)", stroke: "var(--line)", "stroke-width": 0.5 }),
        ...ticks.flatMap((t) => {
          const [x, y] = at([t, t]), look = { stroke: "var(--line)", "stroke-width": t === 0 ? 1 : 0.4, opacity: t === 0 ? 1 : 0.5 };
          const word = t && t % 2 === 0 ? [svg("text", { x, y: middle + 15, "text-anchor": "middle", class: "soft" }, number(t, 0)),
            svg("text", { x: middle - 6, y: y + 4, "text-anchor": "end", class: "soft" }, number(t, 0))] : [];
          return [svg("line", { x1: x, x2: x, y1: 0, y2: to, ...look }), svg("line", { x1: 0, x2: to, y1: y, y2: y, ...look }), ...word];
        }));
    };
    // An arrow from the origin; a hollow one is dashed and has an open head, so that it is told apart without its colour.
    const arrow = (tip, colour, { hollow = false, width = 2.5, opacity = 1 } = {}) => {
      const [x, y] = at(tip), [x0, y0] = at([0, 0]), length = Math.hypot(x - x0, y - y0);
      if (length < 1) return svg("circle", { cx: x, cy: y, r: 4, fill: hollow ? "var(--panel)" : colour, stroke: colour, "stroke-width": 2, opacity });
      const [dx, dy] = [(x - x0) / length, (y - y0) / length], head = Math.min(11, length), half = head * 0.45;
      const [bx, by] = [x - head * dx, y - head * dy];
      return svg("g", { opacity, stroke: colour, "stroke-width": width, fill: hollow ? "var(--panel)" : colour },
        svg("line", { x1: x0, y1: y0, x2: bx, y2: by, "stroke-dasharray": hollow ? "5 4" : null }),
        svg("path", { d: `M ${x} ${y} L ${bx - half * dy} ${by + half * dx} L ${bx + half * dy} ${by - half * dx} z`, "stroke-width": 1.5, "stroke-linejoin": "round" }));
    };
    // A name beside a tip and not beyond it, where a longer arrow may pass; it stays within the plane.
    const name = (tip, text, colour, { turn = -50, gap = 13, weight = 600, opacity = 1 } = {}) => {
      const angle = Math.atan2(tip[1], tip[0]) + turn * Math.PI / 180, [x, y] = at(tip), right = Math.cos(angle) >= 0, wide = 7.5 * text.length;
      return svg("text", { x: right ? clamp(x + gap * Math.cos(angle), 3, size - wide) : clamp(x + gap * Math.cos(angle), wide, size - 3),
        y: clamp(y - gap * Math.sin(angle) + 4, 12, size - 4), "text-anchor": right ? "start" : "end", "font-weight": weight, opacity,
        style: `fill: ${colour}; stroke: var(--panel); stroke-width: 4px; paint-order: stroke; stroke-linejoin: round` }, text);
    };
    return { drawing, layer, grips, at, toData, resize, arrow, name, size: () => size };
  };

  // ---- a matrix with names, as a table: a number and its colour in each cell; a row is a query ------------------------------
  // `choose(row)` makes the names of the rows buttons. `update` takes a value for each cell (null: there is none), and may
  // mark cells ([row, column] pairs) and add a last column of text.
  const matrix = (title, { choose, rows: asks = "query", columns: asked = "key", last } = {}) => {
    const words = html("span", {}, title), caption = html("caption", {}, words, html("span", { class: "soft" }, ` row: ${asks}, column: ${asked}`)), table = html("table", { class: "matrix" }, caption);
    let built = "", cells = [], lasts = [], buttons = [];
    const build = (names) => {
      buttons = names.map((word, i) => choose && html("button", { type: "button", onclick: () => choose(i) }, word));
      cells = names.map(() => names.map(() => html("td")));
      lasts = names.map(() => html("td", { class: "last" }));
      table.replaceChildren(caption,
        html("thead", {}, html("tr", {}, html("td", { class: "corner" }), ...names.map((word) => html("th", { scope: "col" }, word)), ...(last ? [html("th", { scope: "col" }, last)] : []))),
        html("tbody", {}, ...names.map((word, i) => html("tr", {}, html("th", { scope: "row" }, buttons[i] ?? word), ...cells[i], ...(last ? [lasts[i]] : [])))));
    };
    const update = (names, values, { colour, chosen, marks = [], ends = [] } = {}) => {
      const most = Math.max(...values.flat().map(Math.abs)), digits = most < 10 ? 2 : most < 100 ? 1 : 0; // columns stay narrow
      if (built !== (built = names.join("\n"))) build(names);
      values.forEach((row, i) => {
        row.forEach((v, j) => {
          const cell = cells[i][j], rgb = v === null ? null : colour(v);
          cell.textContent = v === null ? "–" : number(v, digits);
          cell.style.background = rgb ? css(rgb) : "none";
          cell.style.color = rgb ? inkOn(rgb) : "inherit";
          cell.classList.toggle("marked", marks.some(([r, c]) => r === i && c === j));
        });
        lasts[i].textContent = ends[i] ?? "";
        buttons[i]?.setAttribute("aria-pressed", i === chosen);
        cells[i][0].parentElement.classList.toggle("chosen", i === chosen);
      });
    };
    return { table, update, title: (text) => { words.textContent = text; } };
  };

  // ---- weights as a picture: one canvas pixel a cell, stretched by CSS ----------------------------------------------------
  const paint = (canvas, values, columns, colour) => {
    const n = values.length / columns;
    if (canvas.width !== columns || canvas.height !== n) { canvas.width = columns; canvas.height = n; }
    const context = canvas.getContext("2d"), image = context.createImageData(columns, n);
    values.forEach((v, i) => { const [r, g, b, a = 255] = colour(v); image.data.set([r, g, b, a], 4 * i); });
    context.putImageData(image, 0, 0);
  };

  return { dot, transpose, matmul, softmax, clamp, unpack, rows, sequential, diverging, css, inkOn, html, svg, number, fresh, frame, picker, handle, plane, matrix, paint };
})();
