// Reads the same page again while it is visible, and puts its new content in the place of the old one.
(() => {
  "use strict";
  const every = 1000 * document.getElementById("fresh").dataset.every;
  let tag = "";
  const wait = () => setTimeout(again, every);
  const editing = () => {
    const at = document.activeElement;
    return (at && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) || !getSelection().isCollapsed;
  };
  const scrolled = () => [...document.querySelectorAll(".wide")];
  async function again() {
    if (document.hidden || editing()) return wait();
    const fresh = document.getElementById("fresh");
    try {
      const answer = await fetch(location.href, { headers: { "X-Refresh": "1", "If-None-Match": tag }, redirect: "manual" });
      if (!answer.ok && answer.status !== 304) throw new Error(answer.status || "log in again");
      if (answer.ok) show(await answer.text());
      tag = answer.headers.get("ETag") ?? tag;
      fresh.textContent = `every ${every / 1000} s`;
      document.body.classList.remove("lost");
    } catch (error) {
      fresh.textContent = `no answer (${error.message}); what you see is old, it is tried again`;
      document.body.classList.add("lost");
    }
    wait();
  }
  function show(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const old = document.querySelector("main"), focused = document.activeElement;
    const at = scrolled().map((one) => [one.scrollLeft, one.scrollTop]);
    const place = scrolled().indexOf(focused);
    const link = old.contains(focused) ? focused.getAttribute("href") : null;
    const open = new Set([...old.querySelectorAll("details[open]")].map((one) => one.id));
    old.replaceChildren(...page.querySelector("main").childNodes);
    document.title = page.title;
    old.querySelectorAll("details").forEach((one) => { if (open.has(one.id)) one.open = true; });
    scrolled().forEach((one, place) => { if (at[place]) [one.scrollLeft, one.scrollTop] = at[place]; });
    if (link) old.querySelector(`a[href="${CSS.escape(link)}"]`)?.focus({ preventScroll: true });
    if (place >= 0) scrolled()[place]?.focus({ preventScroll: true });
  }
  wait();
})();
