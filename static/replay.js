/* Small conveniences: on a phone what differs stands below the list, so the link is followed and nothing is swapped; an
   order is sent once. The pages work without. */
(() => {
  const narrow = matchMedia("(max-width: 67.99rem)");
  document.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest?.("a.dv")) event.stopPropagation();
  }, true);
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    setTimeout(() => { for (const button of event.target.querySelectorAll("footer button")) button.disabled = true; });
  });
})();
