/* Small conveniences of the inbox: it works without this file. */
(() => {
  const narrow = matchMedia("(max-width: 61.99rem)");
  /* On a phone an item is a page of its own: the link is followed, nothing is swapped. */
  document.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest?.("a.item")) event.stopPropagation();
  }, true);

  /* x ticks the row that has the focus, where its tool can be asked. It writes nothing. */
  document.addEventListener("keydown", (event) => {
    if (event.key !== "x" || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    document.activeElement.closest?.("a.item")?.closest("li").querySelector("input[type=checkbox]")?.click();
  });

  /* The row of the item that is shown. */
  const mark = () => {
    const shown = document.getElementById("item")?.dataset.item;
    for (const row of document.querySelectorAll("a.item")) {
      const on = row.closest("li")?.id === "i-" + shown;
      if (on) row.setAttribute("aria-current", "true"); else row.removeAttribute("aria-current");
    }
  };
  let opened = false;
  document.addEventListener("click", (event) => { opened = !!event.target.closest?.("a.item"); });
  document.addEventListener("htmx:after:swap", () => {
    mark();
    if (opened) { opened = false; document.getElementById("item")?.focus({ preventScroll: true }); }
  });
})();
