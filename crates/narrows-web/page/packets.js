// The packets of a run: a stream while somebody looks, filters, and what happened to one of them.

const SHOWN = 200;
const KEPT = 2000;

// Instants on the run's clock, to the microsecond.
const instant = (ns) => `${(ns / 1e9).toFixed(6)} s`;
const hasPorts = (packet) => ["tcp", "udp", "sctp"].includes(packet.protocol);
const endpoint = (packet, address, port) => {
  if (!hasPorts(packet)) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
};
const source = (packet) => endpoint(packet, packet.source, packet.source_port) || packet.port;
const destination = (packet) => endpoint(packet, packet.destination, packet.destination_port) || "–";
const linksOf = (packet) => [...new Set([...packet.path, packet.verdict === "dropped" ? packet.where : ""])].filter(Boolean);
const hostsOf = (packet) => [...new Set([packet.from, packet.to])].filter(Boolean);

// What happened at a link that a packet reached.
function atLink({ link, entered_ns, queueing_ns, left_ns }, dropped, span) {
  const moved = left_ns - entered_ns - queueing_ns;
  const waited = queueing_ns ? `, waited ${span(queueing_ns)} in the queue` : "";
  if (dropped) return `reached ${link}${waited}`;
  return `reached ${link}${waited || ", did not wait"}${moved > 0 ? `, then ${span(moved)} of transmission and delay` : ""}`;
}

// A packet's way, in order.
function steps(packet, span) {
  const { arrival_ns, departure_ns, port, feed, links, verdict, text } = packet;
  const isDrop = (number) => verdict === "dropped" && number === links.length - 1 && links[number].link === packet.where;
  const passed = links.map((link, number) => [instant(link.entered_ns), atLink(link, isDrop(number), span)]);
  return [[instant(arrival_ns), `arrived at ${port}${feed ? `, sent by ${feed}` : ""}`], ...passed, [instant(departure_ns), text]];
}

export class Packets {
  constructor(by, element, { span, number }) {
    Object.assign(this, { by, element, span, number, run: null, stream: null, all: [], isPaused: false, chosen: null, last: null });
    by("packets-watch").addEventListener("click", () => (this.stream ? this.stop() : this.start()));
    by("packets-pause").addEventListener("click", () => this.pause(!this.isPaused));
    for (const id of ["packets-drops", "packets-host", "packets-link", "packets-reason", "packets-protocol"]) {
      by(id).addEventListener("change", () => this.show());
    }
    by("packet-close").addEventListener("click", () => this.close());
    by("packet").addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  // Another run is shown.
  follow(run) {
    const wasOn = this.stream !== null;
    this.stop();
    Object.assign(this, { run, all: [], last: null });
    this.close();
    this.show();
    if (wasOn) this.start();
  }

  start() {
    this.pause(false);
    Object.assign(this, { all: [], last: null });
    this.stream = new EventSource(`/api/packets?run=${encodeURIComponent(this.run)}`);
    this.stream.addEventListener("packets", (event) => this.take(JSON.parse(event.data)));
    this.stream.addEventListener("gone", (event) => this.say(JSON.parse(event.data)));
    this.stream.addEventListener("error", () => this.say("No connection to narrows web; trying again."));
    this.button();
    this.say("Waiting for packets.");
    this.show();
  }

  stop() {
    this.stream?.close();
    this.stream = null;
    this.button();
  }

  button() {
    this.by("packets-watch").textContent = this.stream ? "Stop inspecting" : "Inspect packets";
    this.by("packets-watch").setAttribute("aria-pressed", String(this.stream !== null));
    this.by("packets-pause").disabled = !this.stream;
  }

  pause(isPaused) {
    this.isPaused = isPaused;
    this.by("packets-pause").setAttribute("aria-pressed", String(isPaused));
    this.by("packets-pause").textContent = isPaused ? "Resume" : "Pause";
    if (!isPaused) this.show();
  }

  take(news) {
    // Another run of that name counts from the first.
    if (this.last && news.since_ns < this.last.since_ns) this.all = [];
    this.last = news;
    this.all = this.all.concat(news.packets).slice(-KEPT);
    if (!this.isPaused) this.show();
    const { counts, missed } = news;
    const words = (count) => count.toLocaleString("en");
    const leftOut = counts.left_out_delivered + missed;
    const rest = leftOut + counts.left_out_dropped
      ? ` Too many to show: ${words(leftOut)} delivered, ${words(counts.left_out_dropped)} dropped.` : "";
    this.say(`Since ${instant(news.since_ns)}: ${words(counts.delivered)} delivered, ${words(counts.dropped)} dropped.${rest}`);
  }

  say(text) { this.by("packets-said").textContent = text; }

  shown() {
    const value = (id) => this.by(`packets-${id}`).value;
    const [host, link, reason, protocol] = ["host", "link", "reason", "protocol"].map(value);
    const drops = this.by("packets-drops").checked;
    return this.all.filter((packet) => (!drops || packet.verdict === "dropped") && (!host || hostsOf(packet).includes(host))
      && (!link || linksOf(packet).includes(link)) && (!reason || packet.reason === reason) && (!protocol || packet.protocol === protocol));
  }

  // What there is to choose from has been seen; a choice stays.
  offer(id, every, values) {
    const select = this.by(`packets-${id}`);
    const names = [...new Set([...values, select.value])].filter(Boolean).sort();
    if (select.dataset.names === names.join("\n")) return;
    select.dataset.names = names.join("\n");
    const chosen = select.value;
    select.replaceChildren(this.element("option", every, { value: "" }), ...names.map((name) => this.element("option", name, { value: name })));
    select.value = chosen;
  }

  show() {
    this.offer("host", "All hosts", this.all.flatMap(hostsOf));
    this.offer("link", "All links", this.all.flatMap(linksOf));
    this.offer("reason", "All reasons", this.all.map((packet) => packet.reason));
    this.offer("protocol", "All protocols", this.all.map((packet) => packet.protocol));
    const body = this.by("packets-table").tBodies[0];
    // Rows stay, so that who walks over them with the keyboard keeps the place.
    const rows = new Map([...body.rows].map((row) => [row.dataset.seen, row]));
    const wanted = this.shown().slice(-SHOWN).reverse();
    const keep = new Set(wanted.map((packet) => String(packet.seen)));
    for (const [seen, row] of rows) if (!keep.has(seen)) row.remove();
    let before = body.firstChild;
    for (const packet of wanted) {
      const row = rows.get(String(packet.seen));
      if (row && row === before) { before = before.nextSibling; continue; }
      body.insertBefore(row ?? this.row(packet), before);
    }
    this.by("packets-none").hidden = wanted.length > 0;
    this.by("packets-none").textContent = this.all.length ? "No packet matches the filters." : this.stream ? "No packets yet." : "Packets are recorded only while they are inspected.";
    this.by("packets-scroll").hidden = wanted.length === 0;
  }

  row(packet) {
    const { element } = this;
    const row = element("tr", null, { "data-seen": packet.seen });
    const button = element("button", instant(packet.departure_ns), { type: "button", class: "plain" });
    button.addEventListener("click", () => this.open(packet));
    const time = element("td");
    time.append(button);
    const cells = [
      ["From:", source(packet)], ["To:", destination(packet)], ["Protocol:", packet.protocol || "not IP"],
      ["Length:", `${packet.length_bytes.toLocaleString("en")} B`], ["", packet.text],
    ].map(([label, text], at) => element("td", text, { "data-label": label, class: at === 4 ? `wide ${packet.verdict}` : "" }));
    row.append(time, ...cells);
    row.classList.toggle("chosen", this.chosen === packet.seen);
    return row;
  }

  open(packet) {
    this.chosen = packet.seen;
    this.mark();
    const { by, element } = this;
    by("packet-title").textContent = `Packet ${packet.number.toLocaleString("en")} of ${packet.port}${packet.copy ? `, copy ${packet.copy}` : ""}`;
    const facts = [
      ["From", [packet.from, source(packet)].filter(Boolean).join(", ")], ["To", [packet.to, destination(packet)].filter(Boolean).join(", ")],
      ["Protocol", packet.protocol || "not IP"], ["Length", `${packet.length_bytes.toLocaleString("en")} bytes`],
      ["DSCP, ECN", `${packet.traffic_class >> 2}, ${["not capable", "ECT(1)", "ECT(0)", "congestion experienced"][packet.traffic_class & 3]}`],
      ["Wall clock", new Date(packet.wall_ns / 1e6).toLocaleString()],
    ];
    if (packet.reason) facts.push(["Reason", packet.reason]);
    if (packet.settings.length) facts.push(["Settings", packet.settings.join("\n")]);
    if (packet.fragment) facts.push(["Fragment", "cut by a link"]);
    by("packet-facts").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
    by("packet-steps").replaceChildren(...steps(packet, this.span).map(([when, what], at, { length }) => {
      const step = element("li", null, { class: at === length - 1 ? packet.verdict : "" });
      step.append(element("span", when), element("span", what));
      return step;
    }));
    by("packet").hidden = false;
    by("packet-title").focus();
  }

  close() {
    const row = this.by("packets-table").tBodies[0].querySelector("tr.chosen button");
    if (!this.by("packet").hidden && row) row.focus();
    this.by("packet").hidden = true;
    this.chosen = null;
    this.mark();
  }

  mark() {
    for (const row of this.by("packets-table").tBodies[0].rows) row.classList.toggle("chosen", row.dataset.seen === String(this.chosen));
  }
}
