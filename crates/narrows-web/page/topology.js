// Hosts and links as a picture. The places depend on the names and links alone: the same network looks the same each time.

const NS = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Distances from a node over links; nodes that are not reached have none.
function distances(from, beside) {
  const found = new Map([[from, 0]]);
  for (const node of found.keys()) {
    for (const next of beside.get(node)) if (!found.has(next)) found.set(next, found.get(node) + 1);
  }
  return found;
}

// Places of the nodes of one connected part. A chain or tree goes in columns from its end; what has one node beside all others is a
// star; all else stands on a circle.
function part(nodes, beside) {
  const places = new Map();
  const edges = nodes.reduce((sum, node) => sum + beside.get(node).size, 0) / 2;
  const most = nodes.reduce((best, node) => (beside.get(node).size > beside.get(best).size ? node : best), nodes[0]);
  if (nodes.length > 3 && beside.get(most).size === nodes.length - 1 && edges === nodes.length - 1) {
    const rest = nodes.filter((node) => node !== most);
    const radius = Math.max(150, rest.length * 17);
    places.set(most, [0, 0]);
    rest.forEach((node, at) => places.set(node, circle(at, rest.length, radius)));
    return places;
  }
  if (edges <= nodes.length) {
    const far = (from) => [...distances(from, beside)].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
    const found = distances(far(nodes[0]), beside);
    const columns = [];
    for (const [node, at] of found) (columns[at] ??= []).push(node);
    columns.forEach((column, x) =>
      column.forEach((node, y) => places.set(node, [x * 230, (y - (column.length - 1) / 2) * 80])));
    return places;
  }
  const radius = Math.max(140, nodes.length * 34);
  nodes.forEach((node, at) => places.set(node, circle(at, nodes.length, radius)));
  return places;
}

function circle(at, count, radius) {
  const angle = (2 * Math.PI * at) / count - Math.PI / 2;
  return [1.5 * radius * Math.cos(angle), radius * Math.sin(angle)];
}

export function layout(nodes, pairs) {
  const sorted = [...nodes].sort();
  const beside = new Map(sorted.map((node) => [node, new Set()]));
  for (const [one, other] of pairs) {
    if (one === other) continue;
    beside.get(one).add(other);
    beside.get(other).add(one);
  }
  const places = new Map();
  let below = 0;
  for (const node of sorted) {
    if (places.has(node)) continue;
    const reached = distances(node, beside);
    const own = part(sorted.filter((other) => reached.has(other)), beside);
    const top = Math.min(...[...own.values()].map(([, y]) => y));
    const left = Math.min(...[...own.values()].map(([x]) => x));
    let bottom = below;
    for (const [name, [x, y]] of own) {
      places.set(name, [x - left, y - top + below]);
      bottom = Math.max(bottom, y - top + below);
    }
    below = bottom + 120;
  }
  return places;
}

// Draws the network once; gives a function that colours it by what directions do. A way that is `plain` has no figures: a line for
// both directions. `others` are nodes that may have no links.
export function draw(into, directions, hosts, choose, others = []) {
  const nodes = new Set([...directions.flatMap((one) => [one.from, one.to]), ...others]);
  const places = layout(nodes, directions.map((one) => [one.from, one.to]));
  const all = [...places.values()];
  const [width, height] = [0, 1].map((axis) => Math.max(...all.map((place) => place[axis]), 0));
  const few = nodes.size <= 12;
  const view = `-90 -50 ${width + 180} ${height + 100}`;
  const picture = svg("svg", { viewBox: view, role: "group", "aria-label": `${nodes.size} hosts, routers and switches` });
  // A small network does not fill a wide window with big letters.
  picture.style.maxWidth = `${Math.max(width + 180, 320) * 1.6}px`;
  const ways = new Map();
  const between = new Map();
  for (const one of directions) {
    const pair = [one.from, one.to].sort().join("\n");
    const number = between.get(pair) ?? 0;
    between.set(pair, number + (one.plain ? 2 : 1));
    const [[x1, y1], [x2, y2]] = [places.get(one.from), places.get(one.to)];
    const [dx, dy] = [x2 - x1, y2 - y1];
    const long = Math.hypot(dx, dy) || 1;
    // To the right of its own way, so that the two directions lie side by side.
    const aside = one.plain && !number ? 0 : 14 + 16 * Math.floor(number / 2);
    const [nx, ny] = [(-dy / long) * aside, (dx / long) * aside];
    const [mx, my] = [(x1 + x2) / 2 + nx * 1.6, (y1 + y2) / 2 + ny * 1.6];
    const path = one.from === one.to
      ? `M${x1 - 20},${y1} c-40,-70 80,-70 40,0`
      : `M${x1 + nx / 2},${y1 + ny / 2} Q${mx},${my} ${x2 + nx / 2},${y2 + ny / 2}`;
    const way = svg("g", one.plain ? { class: "way plain", role: "img" } : { class: "way", tabindex: "0", role: "button" });
    const seen = svg("path", { class: "seen", d: path });
    const title = svg("title");
    way.append(title, svg("path", { class: "hit", d: path }), seen);
    // Beside the line, away from the other direction's.
    const anchor = Math.abs(nx) < aside / 5 ? "middle" : nx > 0 ? "start" : "end";
    const words = svg("text", { x: (x1 + x2) / 2 + nx * 1.5, y: (y1 + y2) / 2 + ny * 1.9 + 4, "text-anchor": anchor, class: "small" });
    if (few) way.append(words);
    if (!one.plain) way.addEventListener("click", () => choose(one));
    if (!one.plain) way.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(one);
    });
    picture.append(way);
    ways.set(one, { way, seen, title, words });
  }
  for (const [name, [x, y]] of places) {
    const shown = name.length > 16 ? `${name.slice(0, 15)}…` : name;
    const wide = Math.max(44, shown.length * 7.2 + 16);
    const node = svg("g", { class: hosts.has(name) ? "node" : "node router" });
    node.append(svg("title", {}, name), svg("rect", { x: x - wide / 2, y: y - 14, width: wide, height: 28, rx: 6 }));
    node.append(svg("text", { x, y: y + 4, "text-anchor": "middle" }, shown));
    picture.append(node);
  }
  into.replaceChildren(picture);
  return (state, chosen) => {
    for (const [one, { way, seen, title, words }] of ways) {
      const { level, label, short } = state(one);
      seen.setAttribute("class", `seen ${level}`);
      way.classList.toggle("chosen", one.link === chosen?.link && one.lane === chosen?.lane);
      way.setAttribute("aria-label", label);
      title.textContent = label;
      words.textContent = short;
    }
  };
}
