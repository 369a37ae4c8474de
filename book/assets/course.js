// What the course's pages do beyond reading. Every part is an addition: with scripts off, all text is still there.

// A box that scrolls can be reached by keyboard, and fades at the edge behind which there is more; only while it scrolls.
const boxes = document.querySelectorAll(".formula-scroll, .pst-scrollable-table-container, .cell_output table");
const show = (box) => {
  const beyond = box.scrollWidth - box.clientWidth;
  if (beyond > 1) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
  const { scrollLeft } = box;
  box.classList.toggle("more-left", beyond > 1 && scrollLeft > 1);
  box.classList.toggle("more-right", beyond > 1 && scrollLeft < beyond - 1);
};
for (const box of boxes) box.addEventListener("scroll", () => show(box), { passive: true });

// A figure drawn for a wide screen has small letters on a phone. Where it was shrunk, a button opens it at its own size.
const dialog = document.createElement("dialog");
dialog.className = "enlarged";
dialog.setAttribute("aria-label", "Figure at its own size");
dialog.innerHTML = `<form method="dialog"><button class="quiet">Close</button></form><div tabindex="0"><img></div>`;
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // on the ground around it
const open = (image) => {
  const copy = dialog.querySelector("img");
  [copy.src, copy.alt] = [image.src, image.alt];
  dialog.showModal(); // the browser keeps the focus inside, closes at Escape, and puts the focus back
};
const figures = [...document.querySelectorAll(".bd-article .cell_output img:not(.interactive)")].map((image) => {
  const frame = document.createElement("div");
  frame.className = "figure-frame";
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "quiet enlarge",
    textContent: "Enlarge",
    hidden: true,
  });
  image.replaceWith(frame);
  frame.append(image, button);
  const enlarge = () => button.hidden || open(image);
  button.addEventListener("click", enlarge);
  image.addEventListener("click", enlarge);
  image.addEventListener("load", () => fit({ image, button }));
  return { image, button };
});
const fit = ({ image, button }) => {
  const own = image.naturalWidth || Number(image.getAttribute("width")); // one that is still to come has only the latter
  button.hidden = !(image.clientWidth && image.clientWidth < 0.8 * own);
};
if (figures.length) document.body.append(dialog);

// The code of a cell, or of a block, to the clipboard. The button shows on hovering, and when the keyboard reaches it.
for (const pre of document.querySelectorAll(".bd-article div.highlight pre")) {
  if (pre.closest(".cell_output")) continue; // nobody pastes an output
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "quiet copybtn",
    textContent: "Copy",
    ariaLive: "polite", // so that "Copied" is heard, too
  });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent.replace(/\n$/, ""));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Can't copy"; // pages opened from a file may not
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  pre.after(button);
}

const measure = () => {
  boxes.forEach(show);
  figures.forEach(fit);
};
addEventListener("resize", measure);
document.fonts.ready.then(measure);
