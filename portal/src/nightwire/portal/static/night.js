// The state of the night, read anew every ten seconds while somebody looks, and nothing is unfolded or
// told of a replay.
"use strict";
const main = document.getElementById("main");

async function again() {
  if (document.hidden || main.querySelector("details[open], #done") || main.contains(document.activeElement)) return;
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) main.replaceChildren(...page.getElementById("main").children);
  } catch { /* the portal is away: what was shown stays */ }
}
setInterval(again, 10000);
