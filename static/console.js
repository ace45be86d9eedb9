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

  /* The server writes hours and days as this person's clock has them, from the next page on. */
  try {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone) document.cookie = `tz=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  } catch { /* no zone: UTC */ }

  const by = (id) => document.getElementById(id);
  const say = (text) => {
    let spot = by("announce");
    if (!spot) {
      spot = Object.assign(document.createElement("div"), { id: "announce", className: "vh", role: "status" });
      document.body.append(spot);
    }
    spot.textContent = text;
  };

  /* Dialogs: an act's link loads #dialog, which opens when it has come. Focus lands on Close. */
  const show = (dialog) => {
    if (!dialog || dialog.open) return;
    for (const menu of document.querySelectorAll("[popover]:popover-open")) menu.hidePopover();
    dialog.showModal();
    (dialog.querySelector("[autofocus]") ?? dialog.querySelector("[data-close]"))?.focus();
  };
  document.addEventListener("htmx:after:swap", (event) => {
    const target = event.detail?.ctx?.target;
    if (target?.id === "dialog" && target.childElementCount) show(target);
  });
  document.addEventListener("close", (event) => { if (event.target.id === "dialog") event.target.replaceChildren(); }, true);

  document.addEventListener("click", (event) => {
    const hit = event.target.closest("[data-theme-toggle],[data-copy],[data-print],[data-close],[data-show],[role=tab]");
    if (!hit || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (hit.matches("[data-theme-toggle]")) { flip(); say(theme() + " theme"); }
    else if (hit.matches("[data-print]")) print();
    else if (hit.dataset.copy) { navigator.clipboard?.writeText(hit.dataset.copy); say("Copied " + hit.dataset.copy); }
    else if (hit.matches("[role=tab]")) pick(hit);
    else {
      event.preventDefault();
      if (hit.dataset.show) show(by(hit.dataset.show)); else hit.closest("dialog")?.close();
    }
  });

  /* A field of search takes the first Escape to empty itself: here it closes, as everywhere. */
  document.addEventListener("keydown", (event) => {
    const dialog = event.key === "Escape" && event.target.closest?.("dialog[open]");
    if (dialog && event.target.matches("input[type=search]")) { event.preventDefault(); dialog.close(); }
  });

  /* Tabs within a page: one is in the tab order, arrows move. */
  const pick = (tab) => {
    for (const other of tab.parentElement.querySelectorAll("[role=tab]")) {
      const on = other === tab;
      other.setAttribute("aria-selected", on);
      other.tabIndex = on ? 0 : -1;
      const panel = by(other.getAttribute("aria-controls"));
      if (panel) panel.hidden = !on;
    }
  };

  /* The selected entry. A streamed timeline does not know which one it is; an intent's outcome may have changed with it. */
  const CHOSEN = ".wf-row[aria-current],.turn-seq[aria-current]";
  let chosen = null, outcome = null;
  const select = (row) => {
    for (const other of document.querySelectorAll(CHOSEN)) if (other !== row) other.removeAttribute("aria-current");
    if (!row) return;
    row.setAttribute("aria-current", "true");
    const changed = row.id === chosen && row.dataset.outcome !== outcome;
    [chosen, outcome] = [row.id, row.dataset.outcome];
    if (changed) htmx.ajax("GET", row.getAttribute("hx-get"), { target: "#inspector", swap: "innerMorph" });
  };
  document.addEventListener("DOMContentLoaded", () => select(document.querySelector(CHOSEN)));
  document.addEventListener("click", (event) => { const row = event.target.closest(".wf-row,.turn-seq"); if (row) { chosen = null; select(row); } });
  document.addEventListener("htmx:after:swap", () => { if (chosen) select(by(chosen)); });

  /* Keys move and open; none of them writes. */
  const places = { o: "/", r: "/runs", i: "/inbox", d: "/drains", v: "/releases", w: "/workers", a: "/audit" };
  const visible = (row) => row.checkVisibility?.() ?? true;
  const step = (by) => {
    const rows = [...document.querySelectorAll("[data-row]")].filter(visible);
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement.closest?.("[data-row]"));
    rows[Math.max(0, Math.min(rows.length - 1, at + by))].focus();
  };
  const tabKey = (event, tab) => {
    const all = [...tab.parentElement.querySelectorAll("[role=tab]")];
    const next = all[(all.indexOf(tab) + (event.key === "ArrowRight" ? 1 : all.length - 1)) % all.length];
    next.focus();
    pick(next);
  };
  let went = 0;
  document.addEventListener("keydown", (event) => {
    const tab = event.target.closest?.("[role=tab]");
    if (tab && /^Arrow(Left|Right)$/.test(event.key)) { tabKey(event, tab); return; }
    const typing = "input:not([type=checkbox]):not([type=radio]),textarea,select,[contenteditable]";
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(typing)) return;
    if (document.querySelector("dialog[open]")) return;
    const key = event.key;
    if (Date.now() - went < 900 && places[key]) {
      went = 0;
      if (document.querySelector(`.nav a[href="${places[key]}"]`)) location.href = places[key];
      return;
    }
    went = key === "g" ? Date.now() : 0;
    if (key === "/") { event.preventDefault(); show(by("dlg-jump")); }
    else if (key === "?") show(by("dlg-keys"));
    else if (key === "t") flip();
    else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
    else if (key === "x") document.activeElement.closest?.("tr,li")?.querySelector("input[type=checkbox]")?.click();
    else if (key === "[" || key === "]") document.dispatchEvent(new CustomEvent("hf:ruler", { detail: key === "]" ? 1 : -1 }));
    else if (key === "Enter") {
      const row = document.activeElement.closest?.("[data-row]");
      if (row && row === document.activeElement && !row.matches("a,button,input")) row.querySelector("a")?.click();
    }
  });

  /* What the page knows of its own freshness. A stream that is gone says since when, and actions stay available. */
  const clock = (at) => at.toISOString().slice(11, 19) + " UTC";
  const link = { at: new Date(), lost: null, tries: 0, word: "Live", streams: false };
  const live = (on, text) => {
    const spot = by("live");
    if (spot) { spot.dataset.live = on ? "on" : "off"; spot.textContent = text; }
  };
  const fresh = (word) => {
    Object.assign(link, { at: new Date(), lost: null, tries: 0, word: word ?? link.word, streams: true });
    live(true, link.word);
    by("stale")?.setAttribute("hidden", "");
  };
  const stale = () => {
    link.lost ??= new Date();
    const offline = !navigator.onLine;
    live(false, offline ? `Offline. As of ${clock(link.at)}` : `Not live. As of ${clock(link.at)}. Reconnecting, try ${link.tries}`);
    const note = by("stale");
    if (!note || !by("live") || (!offline && link.tries < 2)) return;
    note.querySelector("[data-stale-title]").textContent = `${offline ? "Offline" : "Not live"} since ${clock(link.lost)}`;
    note.querySelector("[data-stale-text]").textContent = offline
      ? `This browser has no network. What you see is as of ${clock(link.at)}.`
      : `What you see may be out of date. Reconnecting, try ${link.tries}. Actions still work: each is checked against the journal before it is written.`;
    note.removeAttribute("hidden");
  };
  document.addEventListener("hf:mode", (event) => {
    const [word, seconds] = String(event.detail?.data ?? event.detail?.value?.data ?? "").split(" ");
    fresh(word === "polling" ? `Polling every ${seconds} s` : "Live");
  });
  document.addEventListener("htmx:sse:after:message", () => { link.at = new Date(); });
  document.addEventListener("htmx:sse:error", (event) => {
    const status = event.detail?.status;
    if (status === 401 || status === 403 || status === 404) { location.reload(); return; }
    link.tries += 1;
    stale();
  });
  /* The first connection of a page is an ordinary request, which nothing tries again. */
  let later = 0;
  const connect = () => {
    clearTimeout(later);
    const sse = document.body._htmx?.sse, url = document.body.getAttribute("hx-sse:connect");
    if (sse?.delayCanceller) sse.delayCanceller();
    else if (sse?.reader) sse.reader.cancel(); /* it may hang on a network that is gone */
    else if (!sse && url) htmx.ajax("GET", url, { source: document.body, swap: "none" });
  };
  const again = (event) => {
    const context = event.detail?.ctx;
    if (context?.sourceElement !== document.body || document.body._htmx?.sse) return;
    const status = context.response?.raw?.status ?? 0;
    if (status === 200) return;
    if (status === 401) { location.reload(); return; }
    link.tries += 1;
    stale();
    clearTimeout(later);
    /* Not all at once: a web process that comes back is asked by all pages that are open. */
    later = setTimeout(connect, (0.5 + Math.random()) * Math.min(30000, 1000 * 2 ** Math.min(link.tries, 5)));
  };
  document.addEventListener("htmx:finally:request", again);
  /* A page that was kept whole while another was looked at is as old as that; others the browser asks for again. */
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  addEventListener("offline", stale);
  addEventListener("online", connect);
  document.addEventListener("click", (event) => { if (event.target.closest("[data-reconnect]")) connect(); });

  /* A list under the pointer or the focus keeps its order: a new one waits until both have left. */
  const pending = new Map();
  const list = (spot) => (spot?.matches?.("[data-still]") ? spot : spot?.querySelector?.("[data-still]"));
  const order = (spot) => [...(list(spot)?.children ?? [])].map((row) => row.id).join();
  const busy = (spot) => list(spot)?.matches(":hover") || list(spot)?.contains(document.activeElement);
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks } = event.detail ?? {};
    if (ctx?.sourceElement !== document.body || !tasks) return;
    for (let n = tasks.length - 1; n >= 0; n -= 1) {
      const { fragment } = tasks[n];
      const target = typeof tasks[n].target === "string" ? document.querySelector(tasks[n].target) : tasks[n].target;
      if (!target?.id || !list(target)) continue;
      pending.delete(target.id);
      if (!busy(target) || order(target) === order(fragment)) continue;
      const spot = document.createElement("template");
      spot.content.append(fragment.cloneNode(true));
      pending.set(target.id, spot.innerHTML);
      tasks.splice(n, 1);
    }
  });
  const settle = () => {
    for (const [id, html] of pending) {
      if (busy(by(id))) continue;
      pending.delete(id);
      htmx.swap({ text: `<hx-partial hx-target="#${id}" hx-swap="outerMorph">${html}</hx-partial>`, sourceElement: document.body, target: document.body, swap: "none" });
    }
  };
  document.addEventListener("pointerout", () => setTimeout(settle, 50));
  document.addEventListener("focusout", () => setTimeout(settle, 50));
})();
