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
  const inkOn = ([r, g, b]) => (0.2126 * r + 0.7152 * g + 0.0722 * b > 120 ? "#111" : "#fff"); // a number on a coloured cell

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
    // `stops`: the values that the slider may take, where they aren't evenly spaced.
    const slider = ({ trait, label, min, max, step = 1, text = String, stops: values }) => {
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
    return { root, controls, stage, room, draw, redraw, set, show, slider, choice, tick, button, again, listen,
      colour: (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim(),
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
    element.addEventListener("pointermove", (event) => { if (hover || (event.buttons === 1 && event.pointerType === "mouse")) point(event); });
    element.addEventListener("keydown", (event) => {
      const [r, c] = get(), [n, m] = size();
      const to = { ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1],
        Home: [r, 0], End: [r, m - 1], PageUp: [0, c], PageDown: [n - 1, c] }[event.key];
      if (!to || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation(); // in Jupyter an arrow would move to another cell
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
      event.stopPropagation();
      move(to.map((v) => Math.round(v * 1e6) / 1e6)); // 0.1 + 0.2 is 0.3 here
    });
    tell();
    return tell;
  };

  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // ---- weights as a picture: one canvas pixel a cell, stretched by CSS ----------------------------------------------------
  const paint = (canvas, values, columns, colour) => {
    const n = values.length / columns;
    if (canvas.width !== columns || canvas.height !== n) { canvas.width = columns; canvas.height = n; }
    const context = canvas.getContext("2d"), image = context.createImageData(columns, n);
    values.forEach((v, i) => { const [r, g, b, a = 255] = colour(v); image.data.set([r, g, b, a], 4 * i); });
    context.putImageData(image, 0, 0);
  };

  return { dot, transpose, matmul, softmax, clamp, unpack, rows, sequential, diverging, css, inkOn, html, svg, number, fresh, frame, picker, handle, still, paint };
})();
