// In place of Bootstrap's script (80 KB): the menus, the mark in the table of contents and "back to top". The rest of
// Bootstrap is not used on these pages. course/site/slim.py puts this file into the light site; the heavy one has Bootstrap's.

for (const button of document.querySelectorAll('[data-bs-toggle="dropdown"]')) {
  const box = button.parentElement;
  const menu = box.querySelector(".dropdown-menu");
  const entries = [...menu.querySelectorAll("a, button")];
  const isOpen = () => menu.classList.contains("show");
  const open = (yes) => {
    menu.classList.toggle("show", yes);
    button.classList.toggle("show", yes);
    button.setAttribute("aria-expanded", yes);
    if (!yes) return;
    menu.dataset.bsPopper = "static"; // by this mark the style sheet puts the menu under its button
    menu.style.translate = "";
    const { left } = menu.getBoundingClientRect();
    if (left < 8) menu.style.translate = `${8 - left}px`; // near the edge it stays on the screen
  };
  button.addEventListener("click", () => open(!isOpen()));
  document.addEventListener("click", (event) => box.contains(event.target) || open(false));
  box.addEventListener("focusout", ({ relatedTarget: next }) => next && !box.contains(next) && open(false));
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && isOpen()) {
      open(false);
      button.focus();
    } else if (step) {
      event.preventDefault(); // else the page would scroll
      if (!isOpen()) open(true);
      const next = entries.indexOf(document.activeElement) + step;
      entries.at(next < 0 ? -1 : next % entries.length).focus();
    }
  });
}

// The section that is being read: the last whose heading has passed the upper part of the window.
const places = [...document.querySelectorAll('.bd-toc-nav a[href^="#"]')]
  .map((link) => ({ link, section: document.getElementById(decodeURIComponent(link.hash.slice(1))) }))
  .filter(({ section }) => section);
let asked = false;
const mark = () => {
  asked = false;
  const passed = places.filter(({ section }) => section.getBoundingClientRect().top < innerHeight * 0.4);
  for (const { link } of places) {
    const here = link === passed.at(-1)?.link;
    link.classList.toggle("active", here);
    link.parentElement.classList.toggle("active", here);
  }
};

const up = document.getElementById("pst-back-to-top");
up?.addEventListener("click", () => scrollTo({ top: 0 }));
let before = scrollY;
addEventListener(
  "scroll",
  () => {
    if (up) up.style.display = scrollY < before && scrollY > innerHeight ? "block" : "none";
    before = scrollY;
    if (places.length && !asked) asked = requestAnimationFrame(mark);
  },
  { passive: true },
);
if (places.length) mark();
