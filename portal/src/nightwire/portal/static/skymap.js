// Skymaps that are not there yet: each is put on the sky once the portal has fetched and drawn it.
"use strict";
const LONGEST = 60000;
let pause = 2000;

async function look(image) {
  const at = image.dataset.skymap, said = image.closest("[data-place]").querySelector("[data-said]");
  const answer = await fetch(at), found = await answer.json();
  if (answer.status === 503 || answer.status === 429) pause = Math.min(pause * 1.5, LONGEST);
  else delete image.dataset.skymap;
  if (answer.ok) image.setAttribute("href", `${at}?format=png`);
  said.textContent = found.says ?? found.message;
}

async function lookAtAll() {
  try {
    if (!document.hidden) for (const image of document.querySelectorAll("image[data-skymap]")) await look(image);
  } catch { /* the portal is away: it is asked again */ }
  setTimeout(lookAtAll, pause);
}
lookAtAll();
