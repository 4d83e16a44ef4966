// The editor in place of the plain field, where CodeMirror is bundled; names of the survey complete themselves.
"use strict";
(async () => {
  const form = document.getElementById("editor"), text = form.elements.text;
  for (const button of form.querySelectorAll("button")) {
    button.addEventListener("click", () => form.setAttribute("aria-busy", "true"));
  }
  if (!globalThis.nightwireEditor) return;
  const host = document.createElement("div");
  host.id = "code";
  host.addEventListener("keydown", event => event.stopPropagation()); // no shortcut of the page's while one writes
  text.after(host);
  text.hidden = true;
  const editor = globalThis.nightwireEditor(host.attachShadow({ mode: "open" }), text.value, "Text of the filter");
  form.addEventListener("submit", () => { text.value = editor.text(); });
  const choose = async () => {
    const answer = await fetch(`/api/filters/names?survey=${encodeURIComponent(form.elements.survey.value)}`);
    editor.use(form.elements.language.value, answer.ok ? await answer.json() : []);
  };
  form.elements.survey.onchange = form.elements.language.onchange = choose;
  await choose();
  host.dataset.ready = "true";
})();
