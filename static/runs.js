/* The list of runs: suggestions under the query field, selected rows, and updates that can be held. It works without. */
(() => {
  const by = (id) => document.getElementById(id);

  /* Selected rows outlive what the stream draws anew. */
  const chosen = new Set();
  const boxes = () => [...document.querySelectorAll('#run-rows input[name="run"]')];
  const count = () => {
    const here = boxes(), on = here.filter((box) => box.checked).length;
    const words = document.querySelector(".bulk-n");
    if (words) words.textContent = `${on} selected`;
    const all = by("select-all");
    if (all) { all.hidden = false; all.checked = on > 0 && on === here.length; all.indeterminate = on > 0 && on < here.length; }
  };
  const restore = () => { for (const box of boxes()) box.checked = chosen.has(box.value); count(); };
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.id === "select-all") for (const other of boxes()) { other.checked = box.checked; box.checked ? chosen.add(other.value) : chosen.delete(other.value); }
    else if (box.name === "run") box.checked ? chosen.add(box.value) : chosen.delete(box.value);
    else return;
    count();
  });

  /* Hold updates: the stream's pictures wait; the newest of the list is fetched when they go on. */
  let held = false, missed = false;
  const button = by("hold-updates"), dot = by("rows-live");
  const paint = () => {
    if (!button) return;
    button.setAttribute("aria-pressed", held);
    button.querySelector("span").textContent = held ? "Resume updates" : "Hold updates";
    dot.dataset.live = held ? "off" : "on";
    dot.textContent = held ? (missed ? "Rows held, there is news" : "Rows held") : "Rows update live";
  };
  const fetchResults = (url) => htmx.ajax("GET", url, { target: "#results", swap: "outerMorph", headers: { "HX-Target": "section#results" } });
  button?.addEventListener("click", () => { held = !held; if (!held && missed) fetchResults(location.href); missed = false; paint(); });
  document.addEventListener("htmx:sse:before:message", (event) => {
    if (held && !event.detail.message?.event) { event.preventDefault(); missed = true; paint(); }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-show-newer]")) {
      event.preventDefault();
      const first = new URL(location.href);
      first.searchParams.delete("after");
      fetchResults(first.href);
      history.replaceState(null, "", first);
    }
  });

  /* Suggestions: a list below the field; arrows choose, Enter or Tab takes, Escape closes. */
  const field = by("q"), list = by("q-suggest");
  let at = -1, timer = 0, asked = "", stale = false;
  const options = () => [...list.querySelectorAll("[role=option]")];
  const close = () => { list.hidden = true; at = -1; field.setAttribute("aria-expanded", "false"); field.removeAttribute("aria-activedescendant"); };
  const mark = (next) => {
    const all = options();
    at = (next + all.length) % all.length;
    all.forEach((option, n) => option.setAttribute("aria-selected", n === at));
    field.setAttribute("aria-activedescendant", all[at].id);
    all[at].scrollIntoView({ block: "nearest" });
  };
  const take = (option) => {
    field.value = option.dataset.whole;
    field.setSelectionRange(+option.dataset.caret, +option.dataset.caret);
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const ask = async () => {
    const url = `${field.dataset.suggest}?${new URLSearchParams({ q: field.value, at: field.selectionStart })}`;
    asked = url;
    clearTimeout(timer);
    const answer = await fetch(url, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer?.ok || asked !== url || document.activeElement !== field) return;
    list.innerHTML = await answer.text();
    const any = options().length > 0;
    list.hidden = !any; at = -1; stale = false;
    field.setAttribute("aria-expanded", any);
    field.removeAttribute("aria-activedescendant");
  };
  if (field && list) {
    const soon = () => { stale = true; clearTimeout(timer); timer = setTimeout(ask, 120); };
    field.addEventListener("input", soon);
    field.addEventListener("click", soon);
    field.addEventListener("blur", () => setTimeout(close, 150));
    field.addEventListener("keydown", (event) => {
      const open = !list.hidden;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (open && !stale) mark(at + (event.key === "ArrowDown" ? 1 : -1)); else ask().then(() => { if (!list.hidden) mark(0); });
      } else if (open && at >= 0 && (event.key === "Enter" || event.key === "Tab")) { event.preventDefault(); take(options()[at]); }
      else if (open && event.key === "Escape") { event.preventDefault(); event.stopPropagation(); close(); }
      else if (event.key === "Enter") { clearTimeout(timer); close(); }
    });
    list.addEventListener("mousedown", (event) => { const option = event.target.closest("[role=option]"); if (option) { event.preventDefault(); take(option); } });
  }

  /* What is wrong with the query is told of the field too. */
  const judge = () => {
    if (!field) return;
    if (document.querySelector("#q-fault .fault")) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
  };
  document.addEventListener("htmx:after:swap", () => { restore(); judge(); });
  if (button) { button.hidden = dot.hidden = false; }
  restore();
})();
