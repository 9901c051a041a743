/* What the rows of one cluster are, and what each says when pointed at. */

/** The charts of one cluster: a view of time, the brokers' colours, and the rows. */
class Chart {
  constructor(section, data, words) {
    Object.assign(this, { section, data, words, base: data.base, rows: [], lanes: [] });
    this.end = Math.max(data.to, data.from + 1);
    this.view = new View(0, Math.max(data.last, data.to, 1), data.from, this.end);
    this.brokers = brokerColours(data.brokers);
    this.colours = theme();
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        entry.target.row.visible = entry.isIntersecting;
        if (entry.isIntersecting && entry.target.row.stale) entry.target.row.paint();
      }
    }, { rootMargin: "300px" });
    this.view.listeners.push(() => this.refresh());
  }

  /** Marks every row as out of date and paints those on the screen, once per frame. */
  refresh() {
    this.rows.forEach((row) => { row.stale = true; });
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.axis.paint();
      this.rows.forEach((row) => { if (row.visible) row.paint(); });
    });
  }

  paintAll() {
    this.colours = theme();
    this.axis.paint();
    this.rows.forEach((row) => row.paint());
  }

  add(box, label, height, draw, items) {
    const row = new Row(this, label, height, draw, items);
    box.append(row.node);
    this.rows.push(row);
    return row;
  }

  when(time) { return instant(this.base + time); }

  /** "from … to …, so long" as rows for the tooltip. */
  spell(from, to) {
    return [["from", this.when(from)], ["to", to === null ? "still so at the end of the evidence" : this.when(to)],
      ["lasted", (to === null ? "at least " : "") + duration((to ?? this.end) - from)]];
  }

  source(inferred) { return ["how known", inferred < 0 ? "observed" : `inferred: ${this.words.inferred[inferred].replaceAll("_", " ")}`]; }
}

function swatch(chart, broker) {
  const node = el("i", { class: "swatch" });
  node.style.background = chart.brokers.get(broker) || "#888888";
  return node;
}

/** One row per broker that was, or claimed to be, controller. */
function addControllers(chart, box) {
  for (const id of [...new Set(chart.data.controllers.map((c) => c[0]))].sort((a, b) => a - b)) {
    const tenures = chart.data.controllers.filter((c) => c[0] === id);
    const items = tenures.map(([, epoch, from, to, reason, inferred]) => [from, to, () => [
      `Broker ${id} controller, epoch ${epoch}`, [...chart.spell(from, to), ["ended", reason ? reason.replaceAll("_", " ") : "–"], chart.source(inferred)]]]);
    chart.add(box, [swatch(chart, id), id < 0 ? "unknown" : `broker ${id}`], 22, (context, width, height, view, colours) => {
      for (const [, epoch, from, to, , inferred] of tenures) {
        const where = place(view, width, from, to ?? chart.end);
        if (!where) continue;
        const colour = chart.brokers.get(id) || "#888888";
        band(context, where[0], 4, Math.max(where[1] - 1, 1.5), 15, colour, inferred >= 0);
        caption(context, `epoch ${epoch}`, where[0], 12, where[1], inferred >= 0 ? colours.text : ink(colour));
      }
    }, items);
  }
}

/** One row per broker: registered, perhaps registered, not registered. */
function addLiveness(chart, box) {
  for (const id of [...new Set(chart.data.liveness.map((b) => b[0]))].sort((a, b) => a - b)) {
    const lives = chart.data.liveness.filter((b) => b[0] === id);
    const items = lives.map(([, from, to, reason, inferred, before]) => [from, to, () => [`Broker ${id} registered`,
      [...chart.spell(from, to), ...(before !== null ? [["gone by", chart.when(before)]] : []),
        ["ended", reason ? reason.replaceAll("_", " ") : "–"], chart.source(inferred)]]]);
    chart.add(box, [swatch(chart, id), `broker ${id}`], 20, (context, width, height, view, colours) => {
      for (const [, from, to, , inferred, before] of lives) {
        const where = place(view, width, from, to ?? chart.end);
        if (where) band(context, where[0], 6, where[1], 9, chart.brokers.get(id) || "#888888", inferred >= 0);
        const doubt = to !== null && before !== null && place(view, width, to, before);
        if (doubt) hatch(context, doubt[0], 6, doubt[1], 9, colours.faint);
        if (to !== null) {
          context.fillStyle = colours.error;
          context.fillRect(view.x(to, width) - 1, 2, 2, 17);
        }
      }
    }, items);
  }
}

/** How many partitions were in trouble at once: one staircase per kind. */
function addCounts(chart, box) {
  const tint = { offline: "offline", under_min_isr: "error", under_replicated: "warning" };
  for (const kind of ["offline", "under_min_isr", "under_replicated"]) {
    const steps = chart.data.counts[kind];
    if (!steps) continue;
    const most = Math.max(...steps.map((s) => s[1]), 1);
    const items = steps.map(([at, number], i) => [at, i + 1 < steps.length ? steps[i + 1][0] : null, () => [
      `${number.toLocaleString("en")} ${number === 1 ? "partition" : "partitions"} ${kind.replaceAll("_", " ")}`, chart.spell(at, i + 1 < steps.length ? steps[i + 1][0] : null)]]);
    chart.add(box, [kind.replaceAll("_", " "), el("small", {}, ` at most ${most.toLocaleString("en")} at once`)], 40,
      (context, width, height, view, colours) => {
        context.fillStyle = colours[tint[kind]];
        steps.forEach(([at, number], i) => {
          const where = place(view, width, at, i + 1 < steps.length ? steps[i + 1][0] : chart.end);
          if (where && number) context.fillRect(where[0], height - 2 - (number / most) * (height - 6), where[1], (number / most) * (height - 6));
        });
        context.fillStyle = colours.line;
        context.fillRect(0, height - 2, width, 1);
      }, items);
  }
}

/** What was read of whom: one row per kind of source and broker. */
function addCoverage(chart, box) {
  const groups = new Map();
  for (const c of chart.data.coverage) {
    const name = `${c[0]} ${c[1]}`;
    groups.set(name, [...(groups.get(name) || []), c]);
  }
  for (const parts of groups.values()) {
    const [kind, broker] = parts[0];
    const items = parts.map(([, , from, to, coverage, records, files, file, level, reason]) => [from, to, () => [
      `${kind.replaceAll("_", " ")}${broker >= 0 ? ` of broker ${broker}` : ""}: ${coverage.replaceAll("_", " ")}${reason ? `, ${reason.replaceAll("_", " ")}` : ""}`,
      [...chart.spell(from, to), ["records", records.toLocaleString("en")], ["files", file || String(files)], ["lowest level", level || "–"]]]]);
    chart.add(box, [kind.replaceAll("_", " "), el("small", {}, broker >= 0 ? ` broker ${broker}` : "")], 16, (context, width, height, view, colours) => {
      for (const [, , from, to, coverage] of parts) {
        const where = place(view, width, from, to);
        if (!where) continue;
        if (coverage === "covered") { context.fillStyle = colours.faint; context.fillRect(where[0], 5, where[1], 6); }
        else hatch(context, where[0], 3, where[1], 10, coverage === "gap" ? colours.error : colours.warning);
      }
    }, items);
  }
}

/** One lane per partition. */
function addPartitions(chart, box, clusterNumber) {
  chart.data.lanes.forEach((lane, number) => {
    const members = [...new Set([...lane.r.flatMap((r) => r[2]), ...lane.s.flatMap((s) => chart.data.isrs[s[4]])])];
    const strip = Math.max(2, Math.min(4, Math.floor(13 / Math.max(1, members.length)) - 1));
    const items = lane.s.map((s) => [s[0], s[1], () => describeSegment(chart, lane, s)]);
    lane.a.forEach(([kind, from, to, opened, closed]) => items.push([from, to, () => [
      `${chart.words.kinds[kind].replaceAll("_", " ")}`, [...chart.spell(from, to), ...(opened ? [["began", opened]] : []), ...(closed ? [["ended", closed]] : [])]]]));
    lane.f.forEach((f) => {
      const [at, severity, rule, type] = chart.data.findings[f];
      items.push([at, at, () => [`${chart.words.severities[severity]} ${rule}: ${type}`, [["at", chart.when(at)]]]]);
    });
    const notes = [lane.again ? `incarnation ${lane.i}` : null,
      lane.n > lane.s.length ? `latest ${lane.s.length} of ${lane.n.toLocaleString("en")}` : null,
      lane.off > 0 ? `offline ${duration(lane.off)}` : null, lane.n ? null : "no leader known"].filter(Boolean).join(", ");
    const row = chart.add(box, [el("b", {}, `${lane.t}-${lane.p}`), el("small", {}, notes && ` ${notes}`)],
      28 + members.length * (strip + 1), partitionPainter(chart, lane, members), items);
    row.node.id = `lane-${clusterNumber}-${number}`;
    row.node.dataset.name = `${lane.t}-${lane.p}`.toLowerCase();
    row.node.dataset.severities = [...new Set(lane.f.map((f) => chart.words.severities[chart.data.findings[f][1]]))].join(" ");
    row.node.setAttribute("aria-label", `partition ${lane.t}-${lane.p}, ${lane.n} intervals. Arrow keys step through them, Enter lists them.`);
    row.lane = lane;
    row.listing = () => lane.s.map((s) => [["leader", s[2] === NO_LEADER ? "none" : String(s[2])], ...describeSegment(chart, lane, s)[1]]);
    row.rank = number;
    chart.lanes.push(row);
  });
}

function describeSegment(chart, lane, s) {
  const [from, to, leader, epoch, isr, partitionEpoch, controllerEpoch, writer, inferred, file, line] = s;
  const assigned = lane.r.filter((r) => r[0] <= from && (r[1] === null || r[1] > from)).pop();
  const missing = assigned ? assigned[2].filter((id) => !chart.data.isrs[isr].includes(id)) : [];
  return [`${lane.t}-${lane.p}: ${leader === NO_LEADER ? "no leader" : `leader ${leader}`}`, [
    ["leader epoch", String(epoch)], ["ISR", `[${chart.data.isrs[isr].join(", ")}]${missing.length ? `, out: ${missing.join(", ")}` : ""}`],
    ["partition epoch", partitionEpoch ?? "unknown"], ["controller epoch", controllerEpoch ?? "unknown"], ...chart.spell(from, to),
    ["written by", chart.words.writers[writer] ?? "unknown"], chart.source(inferred), ...(file === undefined ? [] : [["evidence", `${chart.data.files[file]}:${line}`]])]];
}
