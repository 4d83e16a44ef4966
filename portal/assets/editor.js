// CodeMirror, put together as the portal uses it: bundled by `make portal-assets`.
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { StandardSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, indentUnit, syntaxHighlighting, HighlightStyle } from "@codemirror/language";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const look = EditorView.theme({
  "&": { color: "var(--text)", fontSize: "14px" },
  "&.cm-focused": { outline: "3px solid var(--accent)", outlineOffset: "-3px" },
  ".cm-scroller": { fontFamily: "ui-monospace, monospace", minHeight: "300px", maxHeight: "520px", overflow: "auto" },
  ".cm-gutters": { background: "var(--tint)", color: "var(--soft)", border: "0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--tint) !important" },
  ".cm-tooltip": { background: "var(--card)", color: "var(--text)", border: "1px solid var(--soft)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent)", color: "var(--page)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: ".8" },
});
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: [tags.comment, tags.docString], color: "var(--soft)", fontStyle: "italic" },
]);

// In Python the survey's own fields are keys: alert["diaSource"]["reliability"].
const inPython = name => name.includes(".") ? name.split(".").map(part => `["${part}"]`).join("") : `.${name}`;
const completing = (language, names) => context => {
  const pattern = language === "python" ? /\balert(\.|\[)[\w."[\]]*/ : /[A-Za-z_][\w.]*/;
  const word = context.matchBefore(pattern);
  if (!word) return null;
  const options = names.map(one => ({
    label: language === "python" ? `alert${inPython(one.name)}` : one.name,
    detail: one.unit && `[${one.unit}]`, info: one.says, type: "property",
  }));
  return { from: word.from, options, validFor: pattern };
};

globalThis.nightwireEditor = (root, text, label) => {
  const way = new Compartment();
  const state = EditorState.create({
    doc: text,
    extensions: [
      lineNumbers(), history(), drawSelection(), bracketMatching(), indentUnit.of("    "), look,
      syntaxHighlighting(colours), EditorView.lineWrapping, EditorView.contentAttributes.of({ "aria-label": label }),
      keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap, indentWithTab]), way.of([]),
    ],
  });
  const view = new EditorView({ state, parent: root, root });
  return {
    text: () => view.state.doc.toString(),
    use(language, names) {
      const words = language === "sql" ? sql({ dialect: StandardSQL }) : python();
      const source = completing(language, names);
      view.dispatch({ effects: way.reconfigure([words, autocompletion({ override: [source] })]) });
    },
    view,
  };
};
