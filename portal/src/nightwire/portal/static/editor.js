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
  let names = [];
  const use = () => editor.use(form.elements.language.value, names);
  const choose = async () => {
    const answer = await fetch(`/api/filters/names?survey=${encodeURIComponent(form.elements.survey.value)}`);
    names = answer.ok ? await answer.json() : [];
    use();
  };
  form.elements.survey.onchange = choose;
  form.elements.language.onchange = use;
  await choose();
  host.dataset.ready = "true";
})();
