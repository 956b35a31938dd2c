// A group of runs, such as a lab, as one network: its graph and its links. Links without a run are shown, too.

import { draw } from "/topology.js";

const EACH = 1000;
const WORST = ["not accurate", "mostly accurate", "accurate", "exact"];

export class Group {
  // `words` writes rates, bytes, numbers and shares; `open` shows a run.
  constructor(by, element, words, open) {
    Object.assign(this, { by, element, words, open, name: null, timer: 0, before: new Map(), drawn: "", colours: null });
  }

  // Shows the group of this name until another is asked for; `said` gets its accuracy, or what is wrong.
  follow(name, ask, said) {
    clearTimeout(this.timer);
    Object.assign(this, { name, drawn: "" });
    this.before.clear();
    this.by("group").hidden = false;
    const look = async () => {
      const answer = await ask(`/api/group?group=${encodeURIComponent(name)}`).catch((error) => ({ error: String(error) }));
      if (this.name !== name) return;
      if (answer.error) said(null, answer.error);
      else said(this.show(answer), null);
      this.timer = setTimeout(look, EACH);
    };
    look();
  }

  show({ nodes, links }) {
    const ways = links.flatMap((link) => this.ways(link));
    const shape = JSON.stringify([nodes, ways.map(({ key }) => key)]);
    if (shape !== this.drawn) {
      this.drawn = shape;
      const chosen = (way) => way.run && this.open(way.run);
      this.colours = draw(this.by("group-topology"), ways, new Set(nodes), chosen, nodes);
      this.rows(ways);
    }
    const now = new Map(ways.map((way) => [way.key, way]));
    this.colours((way) => this.describe(now.get(way.key)), null);
    ways.forEach((way, at) => this.fill(this.by("group-links").tBodies[0].rows[at], way));
    this.before = new Map(ways.map((way) => [way.key, way.counted]));
    const trusts = links.flatMap(({ figures }) => figures?.trust ?? []);
    return WORST.find((word) => trusts.includes(word)) ?? "no link is shaped";
  }

  // Both directions of a link with figures; one way without.
  ways({ ends, nodes: [a, b], run, figures }) {
    if (!figures) return [{ key: ends.join(" – "), link: ends.join(" – "), lane: 0, from: a, to: b, plain: true, run }];
    const near = figures.ports[0]?.host;
    return [true, false].map((forward) => {
      const own = figures.directions.filter((one) => (one.from === near) === forward);
      const settings = figures.settings.filter((one) => own.some((other) => other.link === one.link && other.lane === one.lane));
      const sum = (of) => own.reduce((all, one) => all + of(one), 0);
      const counted = {
        end_ns: figures.end_ns, delivered: sum((one) => one.delivered.bytes), dropped: sum((one) => one.dropped_packets),
        wire: own.map((one) => one.wire_bits),
      };
      const [from, to] = forward ? [a, b] : [b, a];
      const key = (forward ? ends : ends.toReversed()).join(" → ");
      const way = { key, link: key, lane: 0, from, to, run, counted, backlog: sum((one) => one.backlog_bytes) };
      way.configured = settings.length === 1 ? settings[0].configured : `${settings.length} links`;
      way.outage = settings.length > 0 && settings.every((one) => one.outage);
      return Object.assign(way, this.rates(way, own, settings));
    });
  }

  // What happened since the last answer, on the run's own clock.
  rates({ key, counted }, own, settings) {
    const before = this.before.get(key);
    const seconds = before ? (counted.end_ns - before.end_ns) / 1e9 : 0;
    if (seconds <= 0) return { bps: null, drops: 0, used: null };
    const shares = own.flatMap((one, at) => {
      const rate = settings.find((other) => other.link === one.link && other.lane === one.lane)?.rate_bps;
      return rate ? [(counted.wire[at] - (before.wire[at] ?? 0)) / seconds / rate] : [];
    });
    return {
      bps: (8 * (counted.delivered - before.delivered)) / seconds, drops: (counted.dropped - before.dropped) / seconds,
      used: shares.length ? Math.min(1, Math.max(...shares)) : null,
    };
  }

  describe(way) {
    if (way.plain) return { level: "plain", label: `${way.link}: ${way.run ? "no figures" : "not shaped"}`, short: "" };
    const { rate, number, percent } = this.words;
    let level = "free";
    if (way.outage) level = "out";
    else if (way.used !== null) level = way.used > 0.9 ? "high" : way.used > 0.5 ? "mid" : "low";
    const part = way.used === null ? "" : ` (${percent(way.used)})`;
    const now = way.outage ? "outage" : way.bps === null ? "" : rate(way.bps) + part;
    const drops = way.drops ? `, ${number(way.drops)} drops/s` : "";
    return { level, label: `${way.link}: ${way.configured}; ${now}${drops}`, short: way.outage || way.bps ? now : "" };
  }

  rows(ways) {
    const heads = [...this.by("group-links").tHead.rows[0].cells].map((cell) => cell.textContent);
    this.by("group-links").tBodies[0].replaceChildren(...ways.map((way) => {
      const row = this.element("tr");
      row.append(...heads.map((head, at) => this.element("td", null, { "data-label": at ? `${head}:` : "", class: at === 2 ? "wide" : "" })));
      row.cells[0].textContent = way.link;
      if (!way.run) return row;
      const button = this.element("button", way.run, { type: "button", class: "plain" });
      button.addEventListener("click", () => this.open(way.run));
      row.cells[1].append(button);
      return row;
    }));
  }

  fill(row, way) {
    const { rate, bytes, number, percent } = this.words;
    const texts = way.plain
      ? [way.run ? "no figures" : "not shaped", "–", "–", "–", "–"]
      : [way.configured, way.bps === null ? "–" : rate(way.bps), way.used === null ? "–" : percent(way.used), bytes(way.backlog),
        number(way.drops)];
    texts.forEach((text, at) => { if (row.cells[at + 2].textContent !== text) row.cells[at + 2].textContent = text; });
    row.cells[6].classList.toggle("warn", Boolean(way.drops));
  }
}
