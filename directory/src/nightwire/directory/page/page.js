// The site on a page: what graph.json says, drawn; names are texts and never markup.
const EVERY = 5000; // [ms]
const WIDTH = 208, HEIGHT = 46, BETWEEN = 68, UNDER = 12, TOP = 30; // of a node, and around it [px]
const LONGEST = 24; // name in a node [characters]
const HEADS = ["Written by", "Streams", "Filters and brokers", "Their streams", "Read by"];
const byId = (id) => document.getElementById(id);
let found = null, text = "", focused = null;

function made(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children.filter(Boolean));
  return element;
}
const html = (tag, properties, ...children) => made(document.createElement(tag), properties, children);
const svg = (tag, properties, ...children) =>
  made(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
const shortened = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);

function rate(value) {
  if (!value) return value === 0 ? "idle" : "";
  if (value < 0.1) return "< 0.1/s";
  return (value < 10 ? value.toFixed(1) : value < 1e4 ? Math.round(value) : `${Math.round(value / 1e3)} k`) + "/s";
}

function age(seconds) {
  const [one, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([one]) => seconds >= 2 * one) ?? [1, "s"];
  return `${Math.round(seconds / one)} ${unit} ago`;
}

function more(node, edges = found.edges.filter((edge) => edge.to === node.id)) {
  if (node.shape === "topic") return rate(node.rate) || node.state;
  const sum = (what) => edges.reduce((sum, edge) => sum + (edge[what] ?? 0), 0), group = node.kind === "consumer";
  const members = Math.max(0, ...edges.map((edge) => edge.members));
  return [group ? `group of ${members}` : node.kind, group && sum("lag") && `${sum("lag").toLocaleString("en")} behind`,
    node.state !== "live" && node.state].filter(Boolean).join(", ");
}

function columns(nodes, edges) { // bends of an edge stand in the columns that it crosses
  const shown = HEADS.map((head, n) => ({ head, nodes: nodes.filter((node) => node.column === n) }))
    .filter((column) => column.nodes.length);
  const stand = (node, place, tall) => Object.assign(node, { place, tall, left: [], right: [] });
  shown.forEach((column, n) => column.nodes.forEach((node) => stand(node, n, HEIGHT)));
  const ids = new Map(nodes.map((node) => [node.id, node]));
  for (const edge of edges) {
    const first = ids.get(edge.from), last = ids.get(edge.to);
    const bends = shown.slice(first.place + 1, last.place).map((_, n) => stand({}, first.place + 1 + n, 0));
    bends.forEach((bend) => shown[bend.place].nodes.push(bend));
    edge.way = [first, ...bends, last];
    edge.way.slice(1).forEach((node, n) => (node.left.push(edge.way[n]), edge.way[n].right.push(node)));
  }
  const put = (column) => {
    let y = -column.nodes.reduce((sum, node) => sum + node.tall + UNDER, -UNDER) / 2;
    for (const node of column.nodes) node.y = y, y += node.tall + UNDER;
  };
  shown.forEach(put);
  for (let sweep = 0; sweep < 7; sweep++) // by the means of who stands at one side, then at the other
    for (const column of sweep % 2 ? shown.toReversed() : shown) {
      for (const node of column.nodes) {
        const near = sweep % 2 ? node.right : node.left;
        node.wanted = near.length ? near.reduce((sum, one) => sum + middle(one), 0) / near.length : middle(node);
      }
      column.nodes.sort((a, b) => a.wanted - b.wanted);
      put(column);
    }
  return shown;
}
const middle = (node) => node.y + node.tall / 2;

function box(node) {
  const said = `${node.name}: ${[node.kind, more(node), node.state].join(", ")}`;
  return svg("g", {
    class: `node ${node.shape} ${node.state}`, transform: `translate(${node.x} ${node.y})`,
    tabindex: 0, role: "img", "aria-label": said,
  }, svg("title", {}, said), svg("rect", { width: WIDTH, height: HEIGHT, rx: node.shape === "topic" ? 6 : HEIGHT / 2 }),
    svg("circle", { cx: 15, cy: 16, r: 4 }),
    svg("svg", { width: WIDTH - 12, height: HEIGHT }, // cuts off what is wider
      svg("text", { x: 28, y: 20 }, shortened(node.name)), svg("text", { x: 28, y: 37, class: "more" }, more(node))));
}

function line(edge) {
  const [first, ...rest] = edge.way, width = 1.2 + 1.1 * Math.log10(1 + (edge.rate ?? 0));
  let x = first.x + WIDTH, y = middle(first), d = `M ${x} ${y}`;
  for (const node of rest) {
    const bend = (node.x + x) / 2, to = middle(node);
    d += ` C ${bend} ${y} ${bend} ${to} ${node.x} ${to}${node.id ? "" : ` H ${node.x + WIDTH}`}`;
    x = node.x + WIDTH, y = to;
  }
  return svg("path", { class: `edge ${edge.state}`, d, "stroke-width": width });
}

function draw() {
  const nodes = found.nodes.filter((node) => byId("own").checked || !node.own), ids = new Set(nodes.map((node) => node.id));
  const edges = found.edges.filter((edge) => ids.has(edge.from) && ids.has(edge.to));
  const shown = columns(nodes, edges), placed = shown.flatMap((column) => column.nodes);
  const top = Math.min(0, ...placed.map((node) => node.y)) - TOP;
  for (const node of placed) node.x = node.place * (WIDTH + BETWEEN), node.y -= top;
  const height = Math.max(TOP, ...placed.map((node) => node.y + node.tall)) + 4;
  const width = Math.max(WIDTH, shown.length * (WIDTH + BETWEEN) - BETWEEN) + 8;
  const lines = edges.map((edge) => ({ edge, element: line(edge) }));
  const boxes = nodes.map((node) => ({ node, element: box(node) }));
  const heads = shown.map((column, n) => svg("text", { class: "head", x: n * (WIDTH + BETWEEN), y: 14 }, column.head));
  const graph = byId("graph"), kept = focused; // taking the focused node away would forget it
  graph.replaceChildren(...heads, ...lines.map((one) => one.element), ...boxes.map((one) => one.element));
  made(graph, { width, height, viewBox: `-4 0 ${width} ${height}` }, []);
  for (const { node, element } of boxes) {
    element.onfocus = element.onmouseenter = () => show(graph, node.id, lines, boxes);
    element.onblur = element.onmouseleave = () => show(graph, null, lines, boxes);
    element.addEventListener("focus", () => (focused = node.id));
    element.addEventListener("blur", () => (focused = null));
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
  const ids = new Map(found.nodes.map((node) => [node.id, node]));
  const parties = (edges, end) => edges.map((edge) => {
    const party = ids.get(edge[end]);
    return html("div", {}, `${party.name} (${more(party, [edge])})`);
  });
  const cell = (label, ...children) => html("td", { "data-label": label }, ...children);
  const words = (said) => said && html("span", {}, said);
  const topics = found.nodes.filter((node) => node.shape === "topic" && (byId("own").checked || !node.own));
  byId("streams").tBodies[0].replaceChildren(...topics.map((node) => html("tr", {},
    html("th", { scope: "row" }, node.name),
    cell("State", html("span", { class: node.state }, node.state)),
    cell("Rate", words(rate(node.rate))),
    cell("Newest", words(node.newest && age((found.site.heard - node.newest) / 1000))),
    cell("Written by", ...parties(found.edges.filter((edge) => edge.to === node.id), "from")),
    cell("Read by", ...parties(found.edges.filter((edge) => edge.from === node.id), "to")))));
  byId("processes").replaceChildren(...found.processes.map((one) =>
    html("li", { class: one.state }, one.state === "live" ? one.name : `${one.name}, ${one.state}`)));
}

function tell(said, away) {
  byId("said").className = away ? "away" : "";
  if (byId("said").textContent !== said) byId("said").textContent = said; // read aloud once
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch("graph.json");
    if (!answer.ok) throw new Error((await answer.json()).message);
    const now = await answer.text();
    if (now !== text) text = now, found = JSON.parse(now), draw(), list();
    const { site, streams, bootstrap } = found.site;
    const left = streams - found.nodes.filter((node) => node.shape === "topic").length;
    byId("site").textContent = `at ${site}`;
    tell(`${streams} streams in Kafka at ${bootstrap}${left > 0 ? `; ${left} are not drawn` : ""}`);
  } catch (error) {
    tell(`No answer from the directory (${error.message}): what is shown may be old.`, true);
  }
}

byId("own").onchange = () => { if (found) draw(), list(); };
document.onvisibilitychange = look;
setInterval(look, EVERY);
look();
