/* The run page's own conveniences: the ruler follows the hand, copies, and the address keeps up. The page works without. */
(() => {
  const by = (id) => document.getElementById(id);
  const range = () => by("seq");

  /* What the ruler says, and which rows come after it. */
  const follow = () => {
    const input = range();
    if (!input) return;
    const at = +input.value, last = +input.max;
    input.setAttribute("aria-valuetext", `State at seq ${at}`);
    for (const spot of [by("ruler-at"), by("tab-at")]) if (spot) spot.textContent = at;
    for (const row of document.querySelectorAll(".wf [data-seq]")) row.toggleAttribute("data-after", at < last && +row.dataset.seq > at);
    for (const step of document.querySelectorAll("[data-nudge]")) step.toggleAttribute("aria-disabled", +step.dataset.nudge < 0 ? at <= 1 : at >= last);
  };
  const nudge = (by) => {
    const input = range();
    if (!input) return;
    input.value = +input.value + by;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  };
  document.addEventListener("input", (event) => { if (event.target.id === "seq") follow(); });
  document.addEventListener("keydown", (event) => {  /* On the ruler itself the keys are the ruler's too. */
    if (event.target.id === "seq" && (event.key === "[" || event.key === "]")) nudge(event.key === "]" ? 1 : -1);
  });
  document.addEventListener("hf:ruler", (event) => nudge(event.detail));

  document.addEventListener("click", (event) => {
    const hit = event.target.closest("[data-nudge],[data-copies]");
    if (!hit || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (hit.dataset.nudge) {
      event.preventDefault();
      if (!hit.hasAttribute("aria-disabled")) nudge(+hit.dataset.nudge);
      return;
    }
    navigator.clipboard?.writeText(by(hit.dataset.copies).textContent);
    const said = hit.lastChild, before = said.textContent;
    said.textContent = "Copied";
    setTimeout(() => { said.textContent = before; }, 1500);
  });

  /* The inspector says which address shows it; the ruler asks with the entry that is chosen. */
  const settle = () => {
    const shown = document.querySelector("#inspector [data-address]"), form = by("ruler");
    if (!shown || !form) return;
    const address = shown.dataset.address;
    if (address !== (location.search || "?")) history.replaceState(history.state, "", address);
    form.elements.seq.value = shown.dataset.seq;
  };

  /* More has come: a ruler that stood at the end stays there, any other stays where it is. */
  const grow = () => {
    const input = range(), last = +(by("ruler-scale")?.dataset.last ?? 0);
    if (!input || !last || +input.max === last) return;
    const atEnd = input.value === input.max;
    input.max = last;
    if (atEnd) input.value = last;
    const said = by("ruler-said");
    if (said) said.textContent = `of ${last}.`;
  };

  /* What somebody has unfolded stays so when a turn is drawn again. */
  htmx.registerExtension("folds", {
    htmx_before_morph_node: (old, detail) => {
      if (old.matches?.("details.turn-fold") && detail.newNode.tagName === "DETAILS") detail.newNode.open = old.open;
    },
  });

  document.addEventListener("htmx:after:swap", () => { grow(); settle(); follow(); });
  document.addEventListener("DOMContentLoaded", follow);
})();
