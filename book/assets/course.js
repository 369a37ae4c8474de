// A box that scrolls must be reachable by keyboard, and only while there is something to scroll.
const boxes = document.querySelectorAll(".formula-scroll, .bd-article pre, .bd-article table");
const reach = () => {
  for (const box of boxes) {
    if (box.scrollWidth > box.clientWidth + 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
};
addEventListener("resize", reach);
document.fonts.ready.then(reach);
