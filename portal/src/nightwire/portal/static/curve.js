// The light curve: detections, forced photometry and upper limits of each band, drawn by uPlot.
"use strict";
const box = document.getElementById("curve");
const COLOURS = { u: "#56106e", g: "#1b8a4b", r: "#c8102e", i: "#b25900", z: "#7a4b2a", y: "#5a5f6b", Y: "#5a5f6b" };
const LIGHT = { u: "#c58bf2", g: "#5fd38d", r: "#ff7b86", i: "#ffb05c", z: "#d9a679", y: "#b5bcc9", Y: "#b5bcc9" };
const ORDER = "ugrizyY";
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => getComputedStyle(document.documentElement).colorScheme === "dark";
const colourOf = band => (isDark() ? LIGHT : COLOURS)[band] ?? style("--accent");
const choice = name => document.getElementById(name);
const unix = mjd => (mjd - 40587) * 86400;
let plot = null, points = [];

// A series' values, errors and shape, by what is shown; null where a measurement is of another series.
function seriesOf(band, kind, quantity) {
  const limit = kind === "limit", values = [], errors = [];
  for (const one of points) {
    const isLimit = quantity === "magnitude" ? one.limit !== null : one.kind === "limit";
    const faint = quantity === "magnitude" && one.magnitude_error > 1.0857; // below S/N 1 a magnitude says nothing
    const mine = one.band === band && (limit || !faint) && (limit ? isLimit : one.kind === kind && !isLimit);
    values.push(mine ? limit && quantity === "magnitude" ? one.limit : one[quantity] : null);
    errors.push(mine && !limit ? one[quantity + "_error"] : null);
  }
  return { band, kind, values, errors, negative: quantity === "magnitude" };
}

function shape(context, kind, negative, x, y, size) {
  context.beginPath();
  if (kind === "limit") { context.moveTo(x - size, y - size); context.lineTo(x + size, y - size); context.lineTo(x, y + size); context.closePath(); context.stroke(); }
  else if (negative) context.strokeRect(x - size, y - size, 2 * size, 2 * size);
  else { context.arc(x, y, size, 0, 2 * Math.PI); kind === "forced" ? context.stroke() : context.fill(); }
}

// Draws one series: its error bars, then a mark at each point (filled, open, a triangle downward; a square: fainter than the template).
const drawing = one => (self, index) => {
  const { ctx } = self, ratio = devicePixelRatio || 1, size = (one.kind === "forced" ? 2.5 : 4) * ratio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(self.bbox.left, self.bbox.top, self.bbox.width, self.bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = colourOf(one.band);
  ctx.lineWidth = ratio;
  ctx.globalAlpha = one.kind === "limit" ? 0.6 : 1;
  for (let at = 0; at < self.data[0].length; at++) {
    const value = self.data[index][at], error = one.errors[at];
    if (value === null || value === undefined) continue;
    const x = self.valToPos(self.data[0][at], "x", true), y = self.valToPos(value, "y", true);
    if (error) {
      ctx.beginPath();
      ctx.moveTo(x, self.valToPos(value - error, "y", true));
      ctx.lineTo(x, self.valToPos(value + error, "y", true));
      ctx.stroke();
    }
    shape(ctx, one.kind, one.negative && points[at].flux < 0, x, y, size);
  }
  ctx.restore();
  return null;
};

// A tenth more than the values; about a single one, room.
function padded(low, high, least) {
  if (low === null || low === undefined) return [0, 1];
  const more = (high - low) * 0.1 || least;
  return [low - more, high + more];
}

function draw() {
  const quantity = choice("quantity").value, byDate = choice("dates").value === "utc";
  const kinds = ["detection", ...(choice("forced").checked ? ["forced"] : []), ...(choice("limits").checked ? ["limit"] : [])];
  const bands = [...new Set(points.map(one => one.band))].sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const all = bands.flatMap(band => kinds.map(kind => seriesOf(band, kind, quantity))).filter(one => one.values.some(v => v !== null));
  const times = points.map(one => byDate ? unix(one.mjd) : one.mjd);
  const day = byDate ? 86400 : 1, single = new Set(times).size === 1;
  const names = { detection: "", forced: " forced", limit: " limit" };
  const axis = { stroke: style("--soft"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line") } };
  plot?.destroy();
  plot = new uPlot({
    width: box.clientWidth - 18, height: 380, tzDate: seconds => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
    scales: { x: { time: byDate, range: (_, low, high) => single ? [times[0] - day, times[0] + day] : padded(low, high, day) }, y: { dir: quantity === "magnitude" ? -1 : 1, range: (_, low, high) => padded(low, high, quantity === "magnitude" ? 0.5 : Math.abs(low) || 1) } },
    axes: [
      { ...axis, label: byDate ? "UTC" : "MJD (UTC)", space: 90, ...(byDate ? {} : { values: (_, ticks) => ticks.map(one => +one.toFixed(4)) }) },
      { ...axis, label: quantity === "magnitude" ? "difference magnitude [AB]" : "difference flux [nJy]", size: 76 },
    ],
    cursor: { drag: { x: true, y: true, uni: 20 } },
    series: [{ label: byDate ? "UTC" : "MJD", value: (_, value) => value === null ? "–" : byDate ? new Date(value * 1e3).toISOString().slice(0, 19) : value.toFixed(5) },
      ...all.map(one => ({ label: one.band + names[one.kind], stroke: colourOf(one.band), paths: drawing(one), points: { show: false }, value: (_, value) => value === null ? "–" : value.toFixed(2) }))],
  }, [times, ...all.map(one => one.values)], box);
}

function fillTable() {
  const heads = document.querySelectorAll("#numbers th"), body = document.querySelector("#numbers tbody"), text = (value, digits) => value === null ? "" : value.toFixed(digits);
  body.replaceChildren(...points.map(one => {
    const row = document.createElement("tr");
    const cells = [text(one.mjd, 6), new Date(unix(one.mjd) * 1e3).toISOString().slice(0, 19), one.band, one.kind, text(one.flux, 1), text(one.flux_error, 1), text(one.magnitude, 3), text(one.limit, 2)];
    cells.forEach((cell, at) => { const made = row.insertCell(); made.textContent = cell; made.dataset.of = heads[at].textContent; });
    return row;
  }));
}

async function load() {
  const answer = await fetch(box.dataset.from), found = await answer.json();
  if (!answer.ok) throw new Error(found.message);
  points = found.curve.filter(one => one.mjd !== null);
  if (!points.length) { box.textContent = found.missing || "Its alerts hold no measurement with a date."; return; }
  document.getElementById("curve-controls").hidden = false;
  fillTable();
  draw();
  for (const name of ["quantity", "dates", "forced", "limits"]) choice(name).onchange = draw;
  choice("whole").onclick = draw;
  addEventListener("theme", draw);
  new ResizeObserver(() => plot.setSize({ width: box.clientWidth - 18, height: 380 })).observe(box);
}
if (box) load().catch(error => { box.textContent = `The light curve cannot be had: ${error.message}`; });
