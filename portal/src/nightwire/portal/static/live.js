// What comes in, as server-sent events: rows are put in front, old ones leave, a paused list waits.
"use strict";
const MOST = 100; // rows that are shown
const list = document.getElementById("rows"), said = document.getElementById("said");
const pause = document.getElementById("pause"), template = document.getElementById("row");
const trouble = document.getElementById("trouble");
let source = null, last = said.dataset.after, arrived = 0, times = [], waiting = 0;

const path = (...parts) => "/" + parts.map(encodeURIComponent).join("/");
const fixed = (value, digits, sign = "") => value === null ? "–" : (sign && value >= 0 ? sign : "") + value.toFixed(digits);

function rowOf(alert) {
  const row = template.content.cloneNode(true).querySelector("tr");
  const name = alert.object ?? alert.id;
  const at = path("object", alert.survey, name) + (alert.object ? "?alert=" + encodeURIComponent(alert.id) : "");
  const image = row.querySelector("img"), [ra, dec] = row.querySelectorAll(".place span");
  for (const link of row.querySelectorAll("a")) link.href = at;
  if (alert.strip) image.src = alert.strip;
  else image.parentElement.remove();
  row.querySelector(".name").textContent = name;
  row.querySelector(".stream").textContent = alert.topic;
  row.querySelector(".mag").textContent = fixed(alert.magnitude, 2) + " ";
  if (alert.band) {
    const band = document.createElement("span");
    band.className = "band";
    band.textContent = alert.band;
    row.querySelector(".mag").append(band);
  }
  ra.textContent = fixed(alert.ra, 5);
  dec.textContent = fixed(alert.dec, 5, "+");
  row.querySelector("time").textContent = (alert.time ?? "–").replace("T", " ").replace("Z", "");
  row.className = "new";
  return row;
}

function take(event) {
  const { rows, more } = JSON.parse(event.data), now = Date.now();
  last = event.lastEventId;
  arrived += rows.length + more;
  times.push([now, rows.length + more]);
  list.prepend(...rows.map(rowOf));
  while (list.rows.length > MOST) list.lastElementChild.remove();
  document.getElementById("empty")?.remove();
}

function tell() {
  if (!source) return;
  const now = Date.now();
  times = times.filter(([when]) => now - when < 10000);
  const rate = times.reduce((sum, [, count]) => sum + count, 0) / 10;
  said.textContent = `Live: ${arrived.toLocaleString("en")} since the page was opened, ${rate.toFixed(rate < 10 ? 1 : 0)}/s; of many at once the newest are shown.`;
}

function listen() {
  const query = new URLSearchParams(location.search);
  query.delete("before");
  query.set("after", last);
  query.set("strips", "");
  source = new EventSource("/api/live?" + query);
  source.addEventListener("rows", take);
  source.addEventListener("state", event => {
    trouble.textContent = JSON.parse(event.data);
    trouble.hidden = !trouble.textContent;
  });
  source.addEventListener("refused", event => { hush(); trouble.textContent = JSON.parse(event.data); trouble.hidden = false; });
  source.onopen = () => { if (waiting) { trouble.hidden = true; waiting = 0; } };
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) { hush(); setTimeout(() => pause.ariaPressed !== "true" && !source && listen(), 5000); }
    waiting += 1;
    trouble.textContent = "The portal does not answer; trying again.";
    trouble.hidden = false;
  };
}

function hush() { source?.close(); source = null; }

function toggle() {
  const paused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", paused);
  pause.firstChild.textContent = paused ? "Go on " : "Pause ";
  if (paused) { hush(); said.textContent = "Paused."; } else { listen(); tell(); }
}

document.querySelector("#choose button").hidden = true;
for (const choice of document.querySelectorAll("#choose select")) choice.onchange = () => {
  for (const other of document.querySelectorAll("#choose select")) if (other !== choice) other.value = "";
  choice.form.submit();
};
if (pause) {
  pause.hidden = false;
  pause.onclick = toggle;
  // nobody looks: nothing is asked for; who looks again is told the newest of all that came
  addEventListener("visibilitychange", () => document.hidden ? hush() : pause.ariaPressed !== "true" && !source && listen());
  addEventListener("keydown", event => {
    if (event.key === "p" && !event.ctrlKey && !event.metaKey && !/^(INPUT|SELECT)$/.test(event.target.tagName)) toggle();
  });
  listen();
  setInterval(tell, 1000);
  tell();
}
