/* On a phone what differs stands below the list: the link is followed, nothing is swapped. The page works without. */
(() => {
  const narrow = matchMedia("(max-width: 67.99rem)");
  document.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest?.("a.dv")) event.stopPropagation();
  }, true);
})();
