// Before anything is painted: the theme that was chosen last, and what every page does.
"use strict";
const root = document.documentElement;
try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch { /* no storage: the system's theme */ }

addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const show = () => {
    button.setAttribute("aria-pressed", root.dataset.theme === "night");
  };
  button.hidden = false;
  button.onclick = () => {
    if (root.dataset.theme === "night") delete root.dataset.theme; else root.dataset.theme = "night";
    try { localStorage.theme = root.dataset.theme ?? ""; } catch { /* it holds for this page */ }
    show();
    dispatchEvent(new Event("theme"));
  };
  show();
  for (const choice of document.querySelectorAll("select[data-submit]")) {
    choice.onchange = () => choice.form.submit();
    choice.form.querySelector("button").hidden = true;
  }
});

addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  if (event.key === "/") { event.preventDefault(); document.getElementById("q").focus(); }
  if (event.key === "n") document.getElementById("theme").click();
});
