/* Small conveniences only: every page works without this file. */
(() => {
  const root = document.documentElement;
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* private mode */ } },
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => store.get("hf-theme") || (dark.matches ? "dark" : "light");
  const paint = () => { root.dataset.theme = theme(); };
  paint();
  dark.addEventListener("change", paint);
  const flip = () => { store.set("hf-theme", theme() === "dark" ? "light" : "dark"); paint(); };

  const say = (text) => {
    let spot = document.getElementById("announce");
    if (!spot) {
      spot = Object.assign(document.createElement("div"), { id: "announce", className: "vh", role: "status" });
      document.body.append(spot);
    }
    spot.textContent = text;
  };

  document.addEventListener("click", (event) => {
    const hit = event.target.closest("[data-theme-toggle],[data-copy],[data-print]");
    if (!hit) return;
    if (hit.matches("[data-theme-toggle]")) { flip(); say(theme() + " theme"); }
    else if (hit.matches("[data-print]")) print();
    else { navigator.clipboard?.writeText(hit.dataset.copy); say("Copied " + hit.dataset.copy); }
  });

  /* The selected entry. A streamed timeline does not know which one it is; an intent's outcome may have changed with it. */
  let chosen = null, outcome = null;
  const select = (row) => {
    for (const other of document.querySelectorAll(".wf-row[aria-current]")) if (other !== row) other.removeAttribute("aria-current");
    if (!row) return;
    row.setAttribute("aria-current", "true");
    const changed = row.id === chosen && row.dataset.outcome !== outcome;
    [chosen, outcome] = [row.id, row.dataset.outcome];
    if (changed) htmx.ajax("GET", row.getAttribute("hx-get"), { target: "#inspector", swap: "innerMorph" });
  };
  document.addEventListener("DOMContentLoaded", () => select(document.querySelector(".wf-row[aria-current]")));
  document.addEventListener("click", (event) => { const row = event.target.closest(".wf-row"); if (row) { chosen = null; select(row); } });
  document.addEventListener("htmx:after:swap", () => { if (chosen) select(document.getElementById(chosen)); });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input,textarea,select")) return;
    if (event.key === "t") flip();
    else if (event.key === "j" || event.key === "k") {
      const rows = [...document.querySelectorAll("[data-row]")];
      if (!rows.length) return;
      const at = rows.indexOf(document.activeElement.closest?.("[data-row]"));
      rows[Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)))].focus();
    } else if (event.key === "/") { event.preventDefault(); document.getElementById("q")?.focus(); }
  });

  /* What the stream says of itself. */
  const live = (on, text) => {
    const spot = document.getElementById("live");
    if (spot) { spot.dataset.live = on ? "on" : "off"; spot.textContent = text; }
  };
  document.addEventListener("htmx:sse:after:connection", () => live(true, "Live"));
  document.addEventListener("htmx:sse:error", () => live(false, "Not live. Reconnecting"));
})();
