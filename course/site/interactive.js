// Brings the interactive figures of a page to life, with no kernel: a small stand-in for Jupyter's widget manager.
// A page holds each figure as a picture (course/site/interactive.py). When one comes near, its state and its code are
// fetched as scripts, not as data, so that it also works on a page that was opened from a folder.
(() => {
  const home = new URL(".", document.currentScript.src);
  const waiting = new Map(); // what was asked for, until its script has handed it over
  const fetched = new Map();
  const fetchScript = (name) => {
    if (!fetched.has(name)) {
      fetched.set(name, new Promise((resolve, reject) => {
        waiting.set(name, resolve);
        const script = document.createElement("script");
        script.src = new URL(`${name}.js`, home);
        script.onerror = () => reject(new Error(`could not load ${script.src}`));
        document.head.append(script);
      }));
    }
    return fetched.get(name);
  };

  // What anywidget gives to `render`: get, set, on, off, save_changes. No one listens elsewhere, so saving does nothing.
  const makeModel = (state) => {
    const data = structuredClone(state), listeners = {};
    const fire = (event) => [...(listeners[event] ?? [])].forEach((f) => f());
    return {
      get: (name) => data[name],
      set: (name, value) => {
        if (Object.is(data[name], value)) return;
        data[name] = value;
        fire(`change:${name}`);
        fire("change");
      },
      on: (events, f) => events.split(" ").forEach((event) => (listeners[event] ??= []).push(f)),
      off: (events, f) => events.split(" ").forEach((event) => { listeners[event] = (listeners[event] ?? []).filter((g) => g !== f); }),
      save_changes: () => {},
    };
  };

  const models = {}; // name of a figure on this page to its model
  const enliven = async (image) => {
    const name = [...image.classList].find((c) => c.startsWith("interactive-")).slice("interactive-".length);
    const { code, ...state } = await fetchScript(name);
    const address = URL.createObjectURL(new Blob([await fetchScript(code)], { type: "text/javascript" }));
    const figure = (await import(address)).default;
    URL.revokeObjectURL(address);
    const place = document.createElement("div"), model = makeModel(state);
    place.className = "interactive-live";
    await figure.render({ model, el: (image.before(place), place) });
    image.classList.add("interactive-picture"); // from now on for paper only
    models[name] = model;
  };

  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      enliven(target).catch((error) => console.error(error)); // the picture stays
    }
  }, { rootMargin: "800px" });
  for (const image of document.querySelectorAll("img.interactive")) near.observe(image);
  globalThis.interactive = { models, deliver: (name, value) => waiting.get(name)(value) };
})();
