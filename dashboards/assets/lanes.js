/* A row: a label and a canvas that draws one thing over time. Only rows on the screen are drawn. */

const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a6fd1", "#b8a400", "#7a8b99", "#5c4a37"];
const NO_LEADER = -1;

/** A colour per broker: its id picks it, the next free one where two ids pick the same. */
function brokerColours(ids) {
  const taken = new Set(), colours = new Map();
  for (const id of ids) {
    let slot = (id - 1 + PALETTE.length) % PALETTE.length;
    while (taken.has(slot) && taken.size < PALETTE.length) slot = (slot + 1) % PALETTE.length;
    taken.add(slot);
    colours.set(id, PALETTE[slot]);
  }
  return colours;
}

/** Black or white, whichever is easier to read on the colour. */
function ink(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return r * 0.299 + g * 0.587 + b * 0.114 > 140 ? "#111" : "#fff";
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  return { text: read("--text"), faint: read("--faint"), line: read("--line"), offline: read("--offline"),
    offlineInk: read("--offline-ink"), error: read("--error"), broken: read("--broken"), warning: read("--warning"), info: read("--info"),
    missing: read("--missing"), mark: read("--mark"), surface: read("--surface") };
}

class Row {
  /** draw(context, width, height, view, colours) paints; items are {from, to (null: open), describe(), isLast} for
   *  hover and keys. */
  constructor(chart, label, height, draw, items) {
    Object.assign(this, { chart, height, draw, items, stale: true, visible: false, cursor: -1, mark: null });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.plot = el("div", { class: "plot" }, this.canvas);
    this.label = el("div", { class: "label" }, ...label);
    this.node = el("div", { class: "row", tabindex: "0", role: "group" }, this.label, this.plot);
    this.plot.style.height = `${height}px`;
    this.node.row = this;
    chart.observer.observe(this.node);
  }

  paint() {
    const width = this.plot.clientWidth, scale = window.devicePixelRatio || 1;
    if (!width) return;
    this.stale = false;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    const view = this.chart.view, colours = this.chart.colours;
    grid(context, width, this.height, this.chart);
    this.draw(context, width, this.height, view, colours);
    if (this.mark !== null) {
      context.fillStyle = colours.mark;
      context.fillRect(view.x(this.mark, width) - 1, 0, 2, this.height);
    }
  }

  /** Items under a pixel, the narrowest first, then those that are last. */
  at(x, width) {
    const view = this.chart.view, slack = (view.span / width) * 3, time = view.time(x, width);
    const end = (item) => item.to ?? this.chart.end;
    return this.items.filter((item) => item.from <= time + slack && end(item) >= time - slack
      && (end(item) - item.from < slack * 2 || (item.from <= time && time < end(item))))
      .sort((a, b) => Boolean(a.isLast) - Boolean(b.isLast) || (end(a) - a.from) - (end(b) - b.from));
  }
}

function grid(context, width, height, chart) {
  const { view, base, colours } = chart;
  context.fillStyle = colours.line;
  for (const time of ticks(view, base, width).found) context.fillRect(Math.round(view.x(time, width)), 0, 1, height);
}

/** Pixels of an interval, at least a visible sliver wide; null where it lies outside the window. */
function place(view, width, from, to) {
  const left = Math.max(-2, view.x(from, width)), right = Math.min(width + 2, view.x(to, width));
  if (right < -1 || left > width + 1) return null;
  return [left, Math.max(right - left, 1.5)];
}

function hatch(context, x, y, width, height, colour, gap = 5) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.2;
  context.beginPath();
  for (let at = Math.floor((x - height) / gap) * gap; at < x + width; at += gap) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}

function caption(context, text, x, y, width, colour) {
  const left = Math.max(x, 0);
  context.font = "600 10px ui-sans-serif, system-ui, sans-serif";
  context.textBaseline = "middle";
  if (context.measureText(text).width + 8 > x + width - left) return;
  context.fillStyle = colour;
  context.fillText(text, left + 4, y);
}

/** A band of one colour; what was inferred is lighter and has a dashed edge. */
function band(context, x, y, width, height, colour, inferred) {
  context.globalAlpha = inferred ? 0.38 : 1;
  context.fillStyle = colour;
  context.fillRect(x, y, width, height);
  context.globalAlpha = 1;
  if (!inferred || width < 4) return;
  context.strokeStyle = colour;
  context.setLineDash([3, 2]);
  context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  context.setLineDash([]);
}

/** A finding's sign: a diamond for an error, a triangle for a warning, a dot for an info; red where harm is proven. */
function sign(context, x, { severity, proves_harm }, colours) {
  context.fillStyle = proves_harm ? colours.error : severity === "error" ? colours.broken : colours[severity];
  context.strokeStyle = colours.surface;
  context.lineWidth = 1.5;
  context.beginPath();
  if (severity === "error") { context.moveTo(x, 0.5); context.lineTo(x + 5.5, 6); context.lineTo(x, 11.5); context.lineTo(x - 5.5, 6); }
  else if (severity === "warning") { context.moveTo(x - 5, 1); context.lineTo(x + 5, 1); context.lineTo(x, 10); }
  else context.arc(x, 5, 3.5, 0, 7);
  context.closePath();
  context.stroke();
  context.fill();
}

/** A partition: signs on top, the leader's band, below it one thin line per replica while it is in the ISR. */
function partitionPainter(chart, lane, members) {
  const strip = Math.max(2, Math.min(4, Math.floor(13 / Math.max(1, members.length)) - 1));
  return (context, width, height, view, colours) => {
    const bandTop = 11, bandHeight = 13, stripTop = bandTop + bandHeight + 2;
    const stripY = (member) => stripTop + members.indexOf(member) * (strip + 1);
    for (const { from_ms, to_ms, replicas } of lane.assignments) {
      const where = place(view, width, from_ms, to_ms ?? chart.end);
      if (where) for (const replica of replicas) {
        context.fillStyle = colours.missing;
        context.fillRect(where[0], stripY(replica) + strip / 2 - 0.5, where[1], 1);
      }
    }
    for (const { from_ms, to_ms, leader, leader_epoch, isr, inferred_from } of lane.segments) {
      const where = place(view, width, from_ms, to_ms ?? chart.end);
      if (!where) continue;
      if (leader === NO_LEADER) noLeader(context, where[0], bandTop, where[1], bandHeight, colours);
      else {
        const colour = chart.brokers.get(leader) || "#888888";
        band(context, where[0], bandTop, Math.max(where[1] - 1, 1.5), bandHeight, colour, inferred_from);
        caption(context, `${leader} · epoch ${leader_epoch}`, where[0], bandTop + 7, where[1], inferred_from ? colours.text : ink(colour));
      }
      context.globalAlpha = inferred_from ? 0.5 : 1;
      for (const member of isr) {
        context.fillStyle = chart.brokers.get(member) || "#888888";
        context.fillRect(where[0], stripY(member), where[1], strip);
      }
      context.globalAlpha = 1;
    }
    for (const { kind, from_ms, to_ms } of lane.unavailable) {
      const where = kind === "offline" && place(view, width, from_ms, to_ms ?? chart.end);
      if (where) noLeader(context, where[0], bandTop, where[1], bandHeight, colours);
    }
    for (const finding of lane.findings) {
      const x = view.x(finding.at_ms, width);
      if (x > -8 && x < width + 8) sign(context, x, finding, colours);
    }
  };
}

function noLeader(context, x, y, width, height, colours) {
  context.fillStyle = colours.offline;
  context.fillRect(x, y, width, height);
  if (width > 6) hatch(context, x, y, width, height, colours.offlineInk);
  if (width > 64) {
    context.fillStyle = colours.offline;
    context.fillRect(Math.max(x, 0) + 3, y + 1, 52, height - 2);
    caption(context, "no leader", x, y + 7, width, colours.offlineInk);
  }
}
