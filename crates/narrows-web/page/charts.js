// Charts of the chosen direction over time.

const MOST = 900;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Figures of one direction over time, as they came.
export class Series {
  constructor() {
    this.time = [];
    this.rows = { delivered: [], offered: [], backlog: [], drops: [], late: [] };
  }
  add(time, values) {
    // A clock that is set back, or a second answer for one instant, makes no line that runs backwards.
    if (this.time.length && time <= this.time.at(-1)) return;
    this.time.push(time);
    for (const [name, row] of Object.entries(this.rows)) row.push(values[name] ?? null);
    if (this.time.length > MOST) {
      this.time.shift();
      for (const row of Object.values(this.rows)) row.shift();
    }
  }
}

export class Charts {
  constructor(into, units) {
    this.into = into;
    this.units = units;
    this.made = [];
    this.markers = [];
    new ResizeObserver(() => this.resize()).observe(into);
  }
  build() {
    const { rate, bytes, number, span } = this.units;
    this.into.replaceChildren();
    this.made = [
      ["Throughput", rate, 1000, [["offered", "--free"], ["delivered", "--accent"]]],
      ["Backlog", bytes, 1000, [["backlog", "--down"]]],
      ["Drops per second", number, 1, [["drops", "--bad"]]],
      ["Release lateness, p99 of each second, all ports", span, 1000, [["late", "--fair"]]],
    ].map(([title, unit, least, rows]) => {
      const figure = document.createElement("figure");
      const caption = document.createElement("figcaption");
      caption.textContent = title;
      figure.append(caption);
      this.into.append(figure);
      const axis = { stroke: colour("--soft"), grid: { stroke: colour("--edge"), width: 1 }, ticks: { show: false } };
      const shown = (_, values) => values.map((value) => unit(value));
      const seconds = (_, values) => values.map((value) => `${value} s`);
      const options = {
        width: this.width(), height: 130, cursor: { sync: { key: "time" } }, legend: { show: rows.length > 1 },
        scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, least) * 1.1] } },
        axes: [{ ...axis, values: seconds, size: 24 }, { ...axis, values: shown, size: 76 }],
        series: [{ value: (_, value) => (value === null ? "–" : `${value.toFixed(1)} s`) },
          ...rows.map(([name, stroke]) => ({ label: name, stroke: colour(stroke), width: 2, points: { show: false },
            value: (_, value) => (value === null ? "–" : unit(value)) }))],
        hooks: { draw: [(plot) => this.mark(plot)] },
      };
      const plot = new uPlot(options, [[], ...rows.map(() => [])], figure);
      plot.root.setAttribute("role", "img");
      return { plot, title, unit, names: rows.map(([name]) => name) };
    });
  }
  width() { return Math.max(240, this.into.clientWidth); }
  resize() { for (const { plot } of this.made) plot.setSize({ width: this.width(), height: 130 }); }
  // A line where something was changed.
  mark(plot) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour("--soft");
    ctx.setLineDash([3, 3]);
    for (const at of this.markers) {
      const x = plot.valToPos(at, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
  show(series, name, markers) {
    this.markers = markers;
    for (const { plot, title, unit, names } of this.made) {
      plot.setData([series.time, ...names.map((row) => series.rows[row])]);
      const last = names.map((row) => `${row} ${unit(series.rows[row].at(-1) ?? 0)}`);
      plot.root.setAttribute("aria-label", `${title} of ${name}: ${last.join(", ")}`);
    }
  }
}
