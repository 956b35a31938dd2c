// The page of a run: what the stream says goes in, what a person changes goes out. Text of runs is only ever set as text.

import { draw } from "/topology.js";
import { Charts, Series } from "/charts.js";
import { Group } from "/group.js";
import { Packets } from "/packets.js";

const by = (id) => document.getElementById(id);

// Units, as narrows writes them.
function scaled(value, steps, digits = 3) {
  const [factor, unit] = steps.find(([factor]) => value >= factor) ?? steps.at(-1);
  return `${Number((value / factor).toPrecision(digits))} ${unit}`;
}
const rate = (bps) => scaled(bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]);
const bytes = (value) => scaled(value, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
const span = (ns) => scaled(ns, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
const number = (value) => Number(value.toPrecision(3)).toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;

const state = {
  run: null, mayChange: false, stream: null, settings: null, tick: null, before: null, rates: new Map(), series: new Map(),
  chosen: null, colours: null, drawn: "", events: [], undo: [], presets: [], keys: [],
};
const charts = new Charts(by("charts"), { rate, bytes, number, span });

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
const packets = new Packets(by, element, { span, number });
const group = new Group(by, element, { rate, bytes, number, percent }, (run) => location.assign(`/?run=${encodeURIComponent(run)}`));
const keyOf = (one) => `${one.link}#${one.lane}`;
const nameOf = (one) => (one.lane ? `${one.link} (${one.from} → ${one.to})` : one.link);
const settingsOf = (one) => state.settings?.directions.find((other) => keyOf(other) === keyOf(one));

// Light and dark.
function theme(name) {
  document.documentElement.dataset.theme = name;
  by("theme").textContent = name === "dark" ? "Light" : "Dark";
  if (state.chosen) { charts.build(); showCharts(); }
}
const system = matchMedia("(prefers-color-scheme: dark)");
const kept = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
system.addEventListener("change", () => kept() ?? theme(system.matches ? "dark" : "light"));
by("theme").addEventListener("click", () => {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", name); } catch { /* It is chosen for this visit, then. */ }
  theme(name);
});

function banner(text) {
  by("banner").textContent = text ?? "";
  by("banner").hidden = !text;
}

async function ask(path, body) {
  const options = body && { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  const answer = await fetch(path, options);
  const isJson = answer.headers.get("content-type")?.startsWith("application/json");
  const value = isJson ? await answer.json() : { error: (await answer.text()).trim() };
  return answer.ok ? value : { error: value.error ?? "refused", ...value };
}

// How late packets were since the last answer: the step of the histogram that has the 99th percentile.
function lateness(now, before) {
  const of = (report) => new Map((report?.lateness?.histogram ?? []).map((step) => [step.up_to_ns ?? Infinity, step.packets]));
  const [later, earlier] = [of(now), of(before)];
  const grown = [...later].map(([end, packets]) => [end, Math.max(0, packets - (earlier.get(end) ?? 0))]);
  const all = grown.reduce((sum, [, packets]) => sum + packets, 0);
  if (!all) return null;
  let seen = 0;
  const step = grown.sort((a, b) => a[0] - b[0]).find(([, packets]) => (seen += packets) >= all - Math.floor(all / 100));
  return Number.isFinite(step[0]) ? step[0] : 1e10;
}

// Rates of a direction between two answers, on the run's own clock.
function measure(tick, before) {
  const earlier = new Map((before?.report.directions ?? []).map((one) => [keyOf(one), one]));
  const seconds = before ? (tick.report.end_ns - before.report.end_ns) / 1e9 : 0;
  const late = lateness(tick.report, before?.report);
  for (const one of tick.report.directions) {
    const then = earlier.get(keyOf(one));
    if (!then || seconds <= 0) continue;
    const per = (now, was) => Math.max(0, now - was) / seconds;
    const found = {
      delivered: 8 * per(one.delivered.bytes, then.delivered.bytes), offered: 8 * per(one.offered.bytes, then.offered.bytes),
      wire: per(one.wire_bits, then.wire_bits), drops: per(one.dropped_packets, then.dropped_packets),
      backlog: one.backlog_bytes, late,
      classes: new Map(one.classes.map((own) => {
        const was = then.classes.find((other) => other.name === own.name && other.queue === own.queue);
        return [own.name, 8 * per(own.sent_bytes, was?.sent_bytes ?? own.sent_bytes)];
      })),
    };
    state.rates.set(keyOf(one), found);
    const series = state.series.get(keyOf(one)) ?? new Series();
    state.series.set(keyOf(one), series);
    series.add(tick.report.end_ns / 1e9, found);
  }
}

// The part of its rate that a direction sends at; none where it has no rate of its own.
function utilization(one) {
  const own = settingsOf(one);
  const found = state.rates.get(keyOf(one));
  return own?.rate_bps && found ? Math.min(1, found.wire / own.rate_bps) : null;
}

function describe(one) {
  const own = settingsOf(one);
  const found = state.rates.get(keyOf(one));
  const used = utilization(one);
  const now = found?.delivered ?? 0;
  let level = "free";
  if (own?.outage) level = "out";
  else if (used !== null) level = used > 0.9 ? "high" : used > 0.5 ? "mid" : "low";
  const drops = found?.drops ? `, ${number(found.drops)} drops/s` : "";
  const waits = found?.backlog ? `, ${bytes(found.backlog)} waiting` : "";
  const part = used === null ? "" : ` (${percent(used)})`;
  const label = `${nameOf(one)}, ${one.from} to ${one.to}: ${own?.outage ? "outage" : rate(now) + part}${waits}${drops}`;
  return { level, label, short: own?.outage ? "outage" : now ? `${rate(now)}${part}` : "" };
}

function choose(one) {
  const anew = !state.chosen || keyOf(state.chosen) !== keyOf(one);
  state.chosen = one;
  by("link-title").textContent = `${nameOf(one)}: ${one.from} → ${one.to}`;
  if (anew) {
    by("key").value = `${one.link}.rate`;
    by("value").value = "";
    offer();
    verdict("");
    charts.build();
  }
  show();
}

function showCharts() {
  const series = state.series.get(keyOf(state.chosen)) ?? new Series();
  charts.show(series, nameOf(state.chosen), state.events.filter(isChange).map((event) => event.at_ns / 1e9));
}

const isChange = (event) => event.what === "changed" || event.what === "timeline";

function totals(tick) {
  const { conservation: all, losses } = tick.report;
  const late = tick.report.lateness;
  const lost = losses.receive_ring_dropped_packets + losses.send_failed_packets + losses.refused_packets;
  const rows = [
    ["Delivered, last second", rate(tick.now?.delivered.one_second_bps ?? 0)],
    ["Run time", span(tick.report.end_ns - tick.report.start_ns)],
    ["Packets in", all.in_packets.toLocaleString("en")],
    ["Dropped", all.dropped_packets.toLocaleString("en")],
    ["Inside", all.inside_packets.toLocaleString("en")],
    ["Lost by the host", lost.toLocaleString("en")],
    ["Lateness p50 / p99.9", late ? `${span(late.p50_ns)} / ${span(late.p999_ns)}` : "–"],
    ["Generation", tick.generation],
  ];
  by("totals").replaceChildren(...rows.map(([name, value]) => {
    const box = element("div");
    box.append(element("span", name), element("b", value));
    return box;
  }));
  accuracy(tick.trust);
  by("trust").title = tick.trust_line;
}

function accuracy(trust) {
  const light = { accurate: "good", exact: "good", "mostly accurate": "fair", "not accurate": "bad" }[trust] ?? "";
  by("trust").firstElementChild.className = `light ${light}`;
  // Said anew only where it changes: it is read aloud.
  if (by("trust-text").textContent !== trust) by("trust-text").textContent = trust;
}

// The rows stay, so that who walks over them with the keyboard keeps the place.
function table(directions) {
  const body = by("links").tBodies[0];
  const names = directions.map(keyOf).join("\n");
  if (body.dataset.names !== names) {
    body.dataset.names = names;
    body.replaceChildren(...directions.map((one) => {
      const row = element("tr");
      const button = element("button", nameOf(one), { type: "button", class: "plain" });
      button.addEventListener("click", () => choose(current(one)));
      const heads = [...by("links").tHead.rows[0].cells].map((cell) => cell.textContent);
      row.append(...heads.map((head, at) => element("td", null, { "data-label": at ? `${head}:` : "", class: at === 1 || at === 7 ? "wide" : "" })));
      row.cells[0].append(button);
      return row;
    }));
  }
  directions.forEach((one, at) => {
    const row = body.rows[at];
    const found = state.rates.get(keyOf(one));
    const used = utilization(one);
    const texts = [
      settingsOf(one)?.configured ?? one.asked, found ? rate(found.delivered) : "–", used === null ? "–" : percent(used),
      one.backlog_packets ? `${number(one.backlog_packets)} packets, ${bytes(one.backlog_bytes)}` : "0",
      one.queueing_mean_ns === null ? "–" : span(one.queueing_mean_ns), found ? number(found.drops) : "–",
      one.drops.map((drop) => `${drop.reason} ${drop.packets.toLocaleString("en")}`).join(", ") || "none",
    ];
    texts.forEach((text, cell) => { if (row.cells[cell + 1].textContent !== text) row.cells[cell + 1].textContent = text; });
    row.cells[6].classList.toggle("warn", Boolean(found?.drops));
    row.classList.toggle("chosen", state.chosen !== null && keyOf(one) === keyOf(state.chosen));
  });
}

const current = (one) => state.tick?.report.directions.find((other) => keyOf(other) === keyOf(one)) ?? one;

function classes(one) {
  const all = one?.classes ?? [];
  if (!all.length) { by("classes").replaceChildren(element("p", "This direction has no classes.")); return; }
  const made = element("table");
  const head = element("tr");
  head.append(...["Class", "Weight", "Throughput", "Share", "Backlog", "Dropped", "Marked"].map((text) => element("th", text, { scope: "col" })));
  made.createTHead().append(head);
  const found = state.rates.get(keyOf(one))?.classes;
  const rows = all.map((own) => {
    const row = element("tr");
    const cells = [own.name, own.weight ?? "–", rate(found?.get(own.name) ?? 0), percent(own.sent_share), bytes(own.backlog_bytes),
      own.dropped_packets.toLocaleString("en"), own.marked_packets.toLocaleString("en")];
    row.append(...cells.map((text) => element("td", text)));
    return row;
  });
  made.createTBody().append(...rows);
  by("classes").replaceChildren(made);
}

function show() {
  const tick = state.tick;
  if (!tick) return;
  const directions = tick.report.directions;
  const shape = directions.map((one) => [keyOf(one), one.from, one.to].join("\t")).join("\n");
  if (shape !== state.drawn) {
    state.drawn = shape;
    const hosts = new Set(state.settings?.ports.map((port) => port.host));
    state.colours = draw(by("topology"), directions, hosts, (one) => choose(current(one)));
  }
  if (!state.chosen && directions.length) {
    // What limits the run is of most interest: the slowest.
    const slow = (one) => settingsOf(one)?.rate_bps ?? Infinity;
    choose(directions.reduce((best, one) => (slow(one) < slow(best) ? one : best)));
    return;
  }
  totals(tick);
  table(directions);
  state.colours((one) => describe(current(one)), state.chosen);
  const own = state.chosen && settingsOf(state.chosen);
  by("outage").textContent = own?.outage ? "End outage" : "Start outage";
  by("outage").setAttribute("aria-pressed", String(Boolean(own?.outage)));
  if (state.chosen) {
    classes(current(state.chosen));
    if (!document.hidden) showCharts();
  }
}

function showEvents() {
  const rows = state.events.slice(-200).reverse().map((event) => {
    const row = element("li");
    const at = new Date(event.wall_ns / 1e6);
    const by = event.by ? ` — ${event.by}` : "";
    row.append(element("time", `${(event.at_ns / 1e9).toFixed(3)} s`, { datetime: at.toISOString(), title: at.toLocaleString() }));
    row.append(element("span", event.what), element("span", event.text + by));
    return row;
  });
  by("events").replaceChildren(...rows);
}

// Changes.
const quoted = (text) => (/^[\w.,:=/%@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
const line = (assignments) => `narrows set --run ${quoted(state.run)} ${assignments.map(quoted).join(" ")}`;

function verdict(text, wrong = false) {
  by("verdict").textContent = text;
  by("verdict").className = wrong ? "wrong" : "";
}

const typed = () => `${by("key").value.trim()}=${by("value").value.trim()}`;

let waiting = 0;
let checks = 0;
// What is typed is asked about once no more is typed for a moment; answers that are overtaken are not shown.
function offer() {
  clearTimeout(waiting);
  by("apply").disabled = true;
  const wanted = typed();
  if (!by("key").value.trim() || !by("value").value.trim()) { by("line").value = ""; verdict(""); return; }
  by("line").value = line([wanted]);
  if (!state.mayChange) return;
  const mine = ++checks;
  waiting = setTimeout(async () => {
    const answer = await ask("/api/check", { run: state.run, assignments: [wanted] }).catch((error) => ({ error: String(error) }));
    if (mine !== checks) return;
    if (answer.error) { verdict(answer.error, true); return; }
    verdict(answer.undo.length ? `valid; undo: ${answer.undo.join(" ")}` : "valid; nothing would change");
    by("apply").disabled = !answer.undo.length;
  }, 250);
}

async function make(assignments, isUndo = false) {
  const generation = state.settings?.generation;
  by("line").value = line(assignments);
  const answer = await ask("/api/set", { run: state.run, assignments, generation }).catch((error) => ({ error: String(error) }));
  if (answer.stale) {
    verdict(`Somebody else changed the run: ${answer.stale.changes.join("; ")}. Look again, then repeat.`, true);
  } else if (answer.error) {
    verdict(answer.error, true);
  } else {
    if (state.settings) state.settings.generation = answer.generation;
    if (isUndo) state.undo.pop();
    else if (answer.undo.length) state.undo.push(answer.undo);
    verdict(`done, generation ${answer.generation}: ${assignments.join(" ")}`);
  }
  by("undo").disabled = !state.undo.length || !state.mayChange;
  by("undo").title = state.undo.length ? line(state.undo.at(-1)) : "";
}

by("key").addEventListener("input", offer);
by("value").addEventListener("input", offer);
by("set").addEventListener("submit", (event) => { event.preventDefault(); make([typed()]); });
by("undo").addEventListener("click", () => state.undo.length && make(state.undo.at(-1), true));
by("outage").addEventListener("click", () =>
  make([`${state.chosen.link}.outage=${!settingsOf(state.chosen)?.outage}`]));
by("use-preset").addEventListener("click", () => {
  const preset = state.presets.find((one) => one.name === by("preset").value);
  if (!preset) return;
  const { link } = state.chosen;
  const [, base, way] = /^(.*)\.(up|down)$/.exec(link) ?? [];
  // A direction gets its own way's values; what has no ways gets those towards the client.
  const rows = way ? preset[way] : preset.down;
  make(rows.map(([key, value]) => `${base ? `${base}.${way}` : link}.${key}=${value}`));
});

// The stream.
function follow(run) {
  state.stream?.close();
  Object.assign(state, { run, settings: null, tick: null, before: null, chosen: null, drawn: "", events: [], undo: [] });
  state.rates.clear();
  state.series.clear();
  packets.follow(run);
  history.replaceState(null, "", `/?run=${encodeURIComponent(run)}`);
  const at = `run=${encodeURIComponent(run)}`;
  by("get-scenario").href = `/api/scenario.toml?${at}`;
  by("get-report").href = `/api/report.json?${at}`;
  by("list").hidden = true;
  const stream = (state.stream = new EventSource(`/api/stream?${at}`));
  stream.addEventListener("settings", (event) => {
    const { settings, about } = JSON.parse(event.data);
    state.settings = settings;
    by("title").textContent = `${about.name ?? run} — ${about.title}`;
    document.title = `${about.name ?? run} – narrows`;
    const of = about.membership?.group;
    by("group-link").hidden = !of || by("runs").dataset.only === "true";
    by("group-link").textContent = of ?? "";
    by("group-link").href = groupAt(of);
    by("keys").replaceChildren(...settings.links.flatMap(({ link }) => state.keys.map((key) => element("option", null, { value: `${link}.${key}` }))));
  });
  stream.addEventListener("events", (event) => {
    const { anew, events } = JSON.parse(event.data);
    state.events = (anew ? [] : state.events).concat(events).slice(-500);
    showEvents();
  });
  stream.addEventListener("tick", (event) => {
    const tick = JSON.parse(event.data);
    // Another run of that name counts from zero.
    if (state.tick && tick.report.end_ns < state.tick.report.end_ns) {
      state.series.clear();
      state.rates.clear();
      state.before = null;
      state.undo = [];
      by("undo").disabled = true;
    } else state.before = state.tick;
    state.tick = tick;
    measure(tick, state.before);
    banner();
    by("run").hidden = false;
    show();
  });
  stream.addEventListener("gone", (event) => {
    banner(JSON.parse(event.data));
    by("trust").firstElementChild.className = "light";
    by("trust-text").textContent = "no run";
  });
  stream.addEventListener("error", () => banner("No connection to narrows web; trying again."));
}

async function runs() {
  const answer = await ask("/api/runs");
  if (answer.error) { banner(answer.error); return; }
  state.mayChange = answer.may_change;
  for (const id of ["key", "value", "outage", "preset", "use-preset"]) by(id).disabled = !answer.may_change;
  const names = answer.runs.map((run) => run.key);
  by("runs").replaceChildren(...names.map((name) => element("option", name, { value: name })));
  by("runs").dataset.only = String(answer.only !== null);
  by("runs").hidden = answer.only !== null || names.length < 2;
  return { names, all: answer.runs, only: answer.only };
}

const groupAt = (name) => `/?group=${encodeURIComponent(name ?? "")}`;

function followGroup(name) {
  by("list").hidden = true;
  by("runs").hidden = true;
  by("title").textContent = name;
  document.title = `${name} – narrows`;
  history.replaceState(null, "", groupAt(name));
  group.follow(name, ask, (trust, wrong) => { accuracy(trust ?? "no run"); banner(wrong); });
}

function list(all) {
  by("list").hidden = false;
  by("trust-text").textContent = "no run chosen";
  if (!all.length) { by("list-runs").replaceChildren(element("li", "No run is active. This list goes on.")); return; }
  const groups = new Set(all.flatMap((run) => run.about.membership?.group ?? []));
  const items = [...groups].map((name) => {
    const item = element("li");
    const count = all.filter((run) => run.about.membership?.group === name).length;
    item.append(element("a", name, { href: groupAt(name) }), ` — a network of ${count} runs`);
    return item;
  });
  by("list-runs").replaceChildren(...items, ...all.map((run) => {
    const item = element("li");
    const link = element("a", run.key, { href: `/?run=${encodeURIComponent(run.key)}` });
    item.append(link, ` — ${run.about.kind}, ${run.about.title}, ${run.about.links} links`);
    return item;
  }));
}

async function begin() {
  theme(kept() ?? (system.matches ? "dark" : "light"));
  const { keys, presets } = await ask("/api/keys");
  Object.assign(state, { keys, presets });
  by("preset").replaceChildren(...presets.map((preset) => element("option", preset.name, { value: preset.name })));
  by("runs").addEventListener("change", () => follow(by("runs").value));
  const asked = new URLSearchParams(location.search).get("run");
  const askedGroup = new URLSearchParams(location.search).get("group");
  if (askedGroup) { followGroup(askedGroup); return; }
  const look = async () => {
    const found = await runs();
    if (!found) return;
    const groups = new Set(found.all.map((one) => one.about.membership?.group));
    const meant = found.only ?? asked;
    // A lab alone is what is meant.
    if (meant === null && groups.size === 1 && !groups.has(undefined)) { followGroup([...groups][0]); return; }
    const run = meant ?? (found.names.length === 1 ? found.names[0] : null);
    if (run === null) { list(found.all); setTimeout(look, 2000); return; }
    by("runs").value = run;
    follow(run);
  };
  await look();
}
begin().catch((error) => banner(String(error)));
