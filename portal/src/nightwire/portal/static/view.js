// The sky view: Aladin Lite with a grid and our own markers, loaded by a click; without images it asks nobody.
"use strict";
const view = document.getElementById("view"), open = document.getElementById("open"), said = document.getElementById("view-said");
const { ra, dec, field, tiles } = view.dataset;
const OFF = ["Layers", "Fullscreen", "SimbadPointer", "Share", "Settings", "CooGrid"].map(name => [`show${name}Control`, false]);

async function alerts() {
  const wide = Number(field) > 20; // the whole list is asked for where a cone would be too wide
  const answer = await fetch(wide ? "/api/alerts?most=1000" : `/api/find?q=${ra}+${dec}&radius=${Math.min(36000, field * 3600)}`);
  const found = await answer.json();
  return (wide ? found.alerts : found.near).filter(one => one.ra !== null);
}

async function show() {
  open.disabled = true;
  said.textContent = "Loading …";
  const { default: A } = await import("/static/vendor/aladin.js");
  await A.init;
  view.className = "shown";
  const sky = A.aladin(view, { ...Object.fromEntries(OFF), survey: tiles ? [tiles] : [], hipsList: [], log: false,
    target: `${ra} ${dec}`, fov: Number(field), cooFrame: "ICRSd", showCooGrid: true, gridColor: "#8fb2ff", reticleColor: "#ffcd28" });
  const marks = A.catalog({ name: "alerts", sourceSize: 14, color: "#ffcd28", shape: "circle" }), found = await alerts();
  sky.addCatalog(marks);
  marks.addSources(found.map(one => A.source(one.ra, one.dec, one)));
  sky.on("objectClicked", source => {
    if (!source) return;
    const link = document.createElement("a"), { survey, object, id } = source.data;
    link.href = "/object/" + [survey, object ?? id].map(encodeURIComponent).join("/");
    link.textContent = object ?? id;
    said.replaceChildren(link);
  });
  open.hidden = true;
  said.textContent = `${found.length} recent alerts there; click one for its name.`;
}

open.onclick = () => show().catch(error => {
  open.disabled = false;
  said.textContent = `The sky view cannot be shown: ${error.message ?? error}. It needs WebGL.`;
});
if (!navigator.onLine) document.getElementById("tiles")?.remove();
