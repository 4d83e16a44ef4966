// The site on a page: what graph.json says, drawn; names are texts and never markup.
const EVERY = 5000; // [ms]
const WIDTH = 212, HEIGHT = 46, BETWEEN = 76, UNDER = 12, TOP = 30; // of a node and around it [px]
const HEADS = ["Written by", "Streams", "Filters and brokers", "Their streams", "Read by"];
const LONGEST = 26; // name in a node [characters]
const byId = (id) => document.getElementById(id);
let found = null, focused = null, text = "";

function made(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const html = (tag, properties, ...children) => made(document.createElement(tag), properties, children);
const svg = (tag, properties, ...children) =>
  made(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

function rate(value) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "idle";
  if (value < 0.1) return "< 0.1/s";
  return (value < 10 ? value.toFixed(1) : value < 10000 ? Math.round(value) : `${Math.round(value / 1000)} k`) + "/s";
}

function age(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

const counted = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
const shortened = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

function more(node) {
  if (node.shape === "topic") return [rate(node.rate), node.rate ? "" : node.state].filter(Boolean).join(", ");
  const edges = found.edges.filter((edge) => edge.to === node.id && node.kind === "consumer");
  const members = edges.length ? Math.max(...edges.map((edge) => edge.members ?? 0)) : 0;
  const lag = edges.reduce((sum, edge) => sum + (edge.lag ?? 0), 0);
  const said = [node.kind === "consumer" ? "group" : node.kind, members ? counted(members, "member") : ""];
  return [...said, lag ? `${lag.toLocaleString("en")} behind` : "", node.state === "live" ? "" : node.state]
    .filter(Boolean).join(", ");
}

function columns(nodes, edges) {
  const all = HEADS.map((head, n) => ({ head, nodes: nodes.filter((node) => node.column === n) }));
  const shown = all.filter((column) => column.nodes.length);
  const near = new Map(nodes.map((node) => [node.id, []]));
  for (const { from, to } of edges) near.get(from).push(to), near.get(to).push(from);
  const height = new Map();
  const place = (column) => column.nodes.forEach((node, n) => height.set(node.id, n - column.nodes.length / 2));
  shown.forEach(place);
  const mean = (node) => {
    const ids = near.get(node.id);
    return ids.length ? ids.reduce((sum, id) => sum + height.get(id), 0) / ids.length : height.get(node.id);
  };
  for (let sweep = 0; sweep < 6; sweep++)
    for (const column of sweep % 2 ? shown.toReversed() : shown) {
      const wanted = new Map(column.nodes.map((node) => [node, mean(node)]));
      column.nodes.sort((a, b) => wanted.get(a) - wanted.get(b)), place(column);
    }
  return shown;
}

function drawn(node) {
  const name = svg("text", { x: 28, y: 20 }, shortened(node.name));
  const below = svg("text", { x: 28, y: 37, class: "more" }, more(node));
  const box = svg("rect", { width: WIDTH, height: HEIGHT, rx: node.shape === "topic" ? 6 : HEIGHT / 2 });
  const said = `${node.name}: ${[node.kind, more(node), node.state].filter(Boolean).join(", ")}`;
  return svg("g", {
    class: `node ${node.shape} ${node.state}`, transform: `translate(${node.x} ${node.y})`,
    tabindex: 0, role: "img", "aria-label": said,
  }, svg("title", {}, said), box, svg("circle", { cx: 15, cy: 16, r: 4 }), name, below);
}

function draw() {
  const own = byId("own").checked;
  const nodes = found.nodes.filter((node) => own || !node.own), ids = new Map(nodes.map((node) => [node.id, node]));
  const edges = found.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to));
  const shown = columns(nodes, edges), rows = Math.max(1, ...shown.map((column) => column.nodes.length));
  const tall = rows * (HEIGHT + UNDER), wide = shown.length * (WIDTH + BETWEEN) - BETWEEN;
  shown.forEach((column, n) => column.nodes.forEach((node, row) => {
    const free = tall - column.nodes.length * (HEIGHT + UNDER);
    Object.assign(node, { x: n * (WIDTH + BETWEEN), y: TOP + free / 2 + row * (HEIGHT + UNDER) });
  }));
  const lines = edges.map((edge) => {
    const a = ids.get(edge.from), b = ids.get(edge.to), x = a.x + WIDTH, y = a.y + HEIGHT / 2, end = b.y + HEIGHT / 2;
    const bend = Math.max(40, Math.abs(b.x - x) / 2), to = `${x + bend} ${y} ${b.x - bend} ${end} ${b.x} ${end}`;
    const width = 1.2 + 1.1 * Math.log10(1 + (edge.rate ?? 0));
    return { edge, element: svg("path", { class: `edge ${edge.state}`, d: `M ${x} ${y} C ${to}`, "stroke-width": width }) };
  });
  const boxes = nodes.map((node) => ({ node, element: drawn(node) }));
  const heads = shown.map((column, n) => svg("text", { class: "head", x: n * (WIDTH + BETWEEN), y: 14 }, column.head));
  const graph = byId("graph"), kept = focused; // taking the focused node away would forget it
  graph.replaceChildren(...heads, ...lines.map((one) => one.element), ...boxes.map((one) => one.element));
  made(graph, { width: wide + 8, height: TOP + tall, viewBox: `-4 0 ${wide + 8} ${TOP + tall}` }, []);
  for (const { node, element } of boxes) {
    const ask = (on) => show(graph, on ? node.id : null, lines, boxes);
    element.onfocus = () => (focused = node.id, ask(true));
    element.onblur = () => (focused = null, ask(false));
    element.onmouseenter = () => ask(true);
    element.onmouseleave = () => ask(false);
  }
  boxes.find((one) => one.node.id === kept)?.element.focus();
}

function show(graph, id, lines, boxes) {
  const near = new Set([id]);
  for (const { edge, element } of lines) {
    const touches = edge.from === id || edge.to === id;
    element.classList.toggle("near", touches);
    if (touches) near.add(edge.from).add(edge.to);
  }
  for (const { node, element } of boxes) element.classList.toggle("near", near.has(node.id));
  graph.classList.toggle("asked", id !== null);
}

function list() {
  const own = byId("own").checked, ids = new Map(found.nodes.map((node) => [node.id, node]));
  const parties = (edges, end) => edges.map((edge) => html("div", {}, `${ids.get(edge[end]).name} (${more(ids.get(edge[end]))})`));
  const cell = (label, ...children) => html("td", { "data-label": label }, ...children);
  byId("streams").tBodies[0].replaceChildren(...found.nodes
    .filter((node) => node.shape === "topic" && (own || !node.own))
    .map((node) => html("tr", {},
      html("th", { scope: "row" }, node.name),
      cell("State", html("span", { class: node.state }, node.state)),
      cell("Rate", html("span", {}, rate(node.rate))),
      cell("Newest", html("span", {}, node.newest ? `${age((found.site.heard - node.newest) / 1000)} ago` : "")),
      cell("Written by", ...parties(found.edges.filter((edge) => edge.to === node.id), "from")),
      cell("Read by", ...parties(found.edges.filter((edge) => edge.from === node.id), "to")))));
  byId("processes").replaceChildren(...found.processes.map((one) =>
    html("li", { class: one.state }, one.state === "live" ? one.name : `${one.name}, ${one.state}`)));
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch("graph.json");
    if (!answer.ok) throw new Error((await answer.json()).message);
    const now = await answer.text();
    if (now !== text) text = now, found = JSON.parse(now), draw(), list();
    const left = found.site.streams - found.nodes.filter((node) => node.shape === "topic").length;
    byId("site").textContent = `at ${found.site.site}`;
    byId("said").textContent = `${counted(found.site.streams, "stream")}, Kafka at ${found.site.bootstrap}` +
      (left > 0 ? `; ${left} more are not drawn` : "");
    byId("said").className = "";
  } catch (error) {
    byId("said").textContent = `No answer from the directory (${error.message}); what is shown may be old.`;
    byId("said").className = "away";
  }
}

byId("own").onchange = () => { if (found) draw(), list(); };
document.onvisibilitychange = look;
setInterval(look, EVERY);
look();
