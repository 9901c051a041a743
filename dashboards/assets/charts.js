/* What the rows of one cluster are, and what each says when pointed at. */

/** The charts of one cluster: a view of time, the brokers' colours, and the rows. */
class Chart {
  constructor(section, data) {
    Object.assign(this, { section, data, base: data.base, rows: [], lanes: [] });
    this.end = Math.max(data.to, data.from + 1);
    this.view = new View(0, Math.max(data.last, data.to, 1), data.from, this.end);
    this.brokers = brokerColours(data.broker_ids);
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

  certainty({ inferred_from }) { return ["how known", inferred_from ? `inferred: ${named(inferred_from)}` : "observed"]; }
}

function swatch(chart, broker) {
  const node = el("i", { class: "swatch" });
  node.style.background = chart.brokers.get(broker) || "#888888";
  return node;
}

/** The rows in groups that have the same key, in the order of the keys' first row. */
function grouped(rows, key) {
  const groups = new Map();
  for (const row of rows) groups.set(key(row), [...(groups.get(key(row)) || []), row]);
  return groups;
}

const byNumber = (groups) => [...groups].sort(([a], [b]) => a - b);

/** One row per broker that was, or claimed to be, controller. */
function addControllers(chart, box) {
  for (const [id, tenures] of byNumber(grouped(chart.data.controllers, (c) => c.controller_id))) {
    const items = tenures.map((c) => ({ from: c.from_ms, to: c.to_ms, describe: () => [
      `Broker ${id} controller, epoch ${c.controller_epoch}`,
      [...chart.spell(c.from_ms, c.to_ms), ["ended", c.end_reason ? named(c.end_reason) : "–"], chart.certainty(c)]] }));
    chart.add(box, [swatch(chart, id), id < 0 ? "unknown" : `broker ${id}`], 22, (context, width, height, view, colours) => {
      for (const c of tenures) {
        const where = place(view, width, c.from_ms, c.to_ms ?? chart.end);
        if (!where) continue;
        const colour = chart.brokers.get(id) || "#888888";
        band(context, where[0], 4, Math.max(where[1] - 1, 1.5), 15, colour, c.inferred_from);
        caption(context, `epoch ${c.controller_epoch}`, where[0], 12, where[1], c.inferred_from ? colours.text : ink(colour));
      }
    }, items);
  }
}

/** One row per broker: registered, perhaps registered, not registered. */
function addBrokers(chart, box) {
  for (const [id, lives] of byNumber(grouped(chart.data.brokers, (b) => b.broker_id))) {
    const items = lives.map((b) => ({ from: b.from_ms, to: b.to_ms, describe: () => [`Broker ${id} registered`,
      [...chart.spell(b.from_ms, b.to_ms), ...(b.ended_before_ms !== null ? [["gone by", chart.when(b.ended_before_ms)]] : []),
        ["ended", b.end_reason ? named(b.end_reason) : "–"], chart.certainty(b)]] }));
    chart.add(box, [swatch(chart, id), `broker ${id}`], 20, (context, width, height, view, colours) => {
      for (const b of lives) {
        const where = place(view, width, b.from_ms, b.to_ms ?? chart.end);
        if (where) band(context, where[0], 6, where[1], 9, chart.brokers.get(id) || "#888888", b.inferred_from);
        if (b.to_ms === null) continue;
        const doubt = b.ended_before_ms !== null && place(view, width, b.to_ms, b.ended_before_ms);
        if (doubt) hatch(context, doubt[0], 6, doubt[1], 9, colours.faint);
        context.fillStyle = colours.error;
        context.fillRect(view.x(b.to_ms, width) - 1, 2, 2, 17);
      }
    }, items);
  }
}

/** Kinds of trouble and their colours, drawn one upon the other. */
const TROUBLE = { under_replicated: "warning", under_min_isr: "error", offline: "offline" };

/** By kind, how many partitions were in trouble from when to when. */
const staircases = (kinds) => new Map(kinds.map(({ kind, counts }) =>
  [kind, counts.map((step, i, all) => ({ ...step, kind, to_ms: all[i + 1]?.at_ms ?? null }))]));

const describeSteps = (chart, steps) => steps.map(({ at_ms, to_ms, partitions, kind }) => ({ from: at_ms, to: to_ms, describe: () => [
  `${partitions.toLocaleString("en")} ${partitions === 1 ? "partition" : "partitions"} ${named(kind)}`, chart.spell(at_ms, to_ms)] }));

function drawSteps(chart, context, width, height, view, steps, most) {
  for (const { at_ms, to_ms, partitions, kind } of steps) {
    const where = place(view, width, at_ms, to_ms ?? chart.end), high = (partitions / most) * (height - 6);
    context.fillStyle = chart.colours[TROUBLE[kind]];
    if (where && partitions) context.fillRect(where[0], height - 2 - Math.max(high, 1), where[1], Math.max(high, 1));
  }
  context.fillStyle = chart.colours.line;
  context.fillRect(0, height - 2, width, 1);
}

/** How many partitions were in trouble at once: one staircase per kind. */
function addTrouble(chart, box) {
  const kinds = staircases(chart.data.trouble);
  for (const kind of Object.keys(TROUBLE).reverse().filter((one) => kinds.has(one))) {
    const steps = kinds.get(kind), most = Math.max(...steps.map((step) => step.partitions), 1);
    chart.add(box, [named(kind), el("small", {}, ` at most ${most.toLocaleString("en")} at once`)], 40,
      (context, width, height, view) => drawSteps(chart, context, width, height, view, steps, most), describeSteps(chart, steps));
  }
}

/** One row per topic: its partitions in trouble at once, all kinds in one. */
function addTopics(chart, box) {
  for (const { topic, partitions, errors, warnings, offline_ms, kinds } of chart.data.topics) {
    const found = staircases(kinds), steps = Object.keys(TROUBLE).flatMap((kind) => found.get(kind) ?? []);
    const notes = [`${partitions.toLocaleString("en")} ${partitions === 1 ? "partition" : "partitions"}`, errors ? `${errors} ${errors === 1 ? "error" : "errors"}` : null,
      warnings ? `${warnings} ${warnings === 1 ? "warning" : "warnings"}` : null, offline_ms > 0 ? `offline ${duration(offline_ms)}` : null].filter(Boolean).join(", ");
    const name = el("button", { class: "topic", title: "show its partitions alone" }, topic);
    name.addEventListener("click", () => { $(".filter-text", chart.section).value = `${topic}-`; applyFilter(chart); saveHash(chart); });
    chart.add(box, [name, el("small", {}, ` ${notes}`)], 26,
      (context, width, height, view) => drawSteps(chart, context, width, height, view, steps, partitions), describeSteps(chart, steps));
  }
}

/** What was read of whom: one row per kind of source and broker. */
function addEvidence(chart, box) {
  for (const parts of grouped(chart.data.evidence, (e) => `${e.source_kind} ${e.broker_id}`).values()) {
    const { source_kind: kind, broker_id: broker } = parts[0];
    const items = parts.map((e) => ({ from: e.from_ms, to: e.to_ms, describe: () => [
      `${named(kind)}${broker >= 0 ? ` of broker ${broker}` : ""}: ${named(e.coverage)}${e.gap_reason ? `, ${named(e.gap_reason)}` : ""}`,
      [...chart.spell(e.from_ms, e.to_ms), ["records", e.records.toLocaleString("en")], ["files", e.file || String(e.files)], ["lowest level", e.level_floor || "–"]]] }));
    chart.add(box, [named(kind), el("small", {}, broker >= 0 ? ` broker ${broker}` : "")], 16, (context, width, height, view, colours) => {
      for (const e of parts) {
        const where = place(view, width, e.from_ms, e.to_ms);
        if (!where) continue;
        if (e.coverage === "covered") { context.fillStyle = colours.faint; context.fillRect(where[0], 5, where[1], 6); }
        else hatch(context, where[0], 3, where[1], 10, e.coverage === "gap" ? colours.error : colours.warning);
      }
    }, items);
  }
}

const samePartition = (a, b) => a.topic === b.topic && a.partition_id === b.partition_id;
const sameIncarnation = (a, b) => samePartition(a, b) && a.topic_incarnation === b.topic_incarnation;

/** One lane per partition. */
function addPartitions(chart, box, clusterNumber) {
  const lanes = chart.data.partitions;
  lanes.forEach((lane, number) => {
    const name = `${lane.topic}-${lane.partition_id}`, drawn = lane.segments.length;
    lane.findings = chart.data.findings.filter((finding) => sameIncarnation(finding, lane));
    const members = [...new Set([...lane.assignments.flatMap((a) => a.replicas), ...lane.segments.flatMap((s) => s.isr)])];
    const strip = Math.max(2, Math.min(4, Math.floor(13 / Math.max(1, members.length)) - 1));
    const items = lane.segments.map((s) => ({ from: s.from_ms, to: s.to_ms, describe: () => describeSegment(chart, lane, s) }));
    lane.unavailable.forEach((u) => items.push({ from: u.from_ms, to: u.to_ms, describe: () => [named(u.kind),
      [...chart.spell(u.from_ms, u.to_ms), ...(u.opened_by ? [["began", u.opened_by]] : []), ...(u.closed_by ? [["ended", u.closed_by]] : [])]] }));
    lane.findings.forEach((f) => items.push({ from: f.at_ms, to: f.at_ms, describe: () => [
      `${f.severity} ${f.rule_id}: ${named(f.divergence_type)}`, [...(f.proves_harm ? [["harm", "proven"]] : []), ["at", chart.when(f.at_ms)]]] }));
    const notes = [lanes.some((other) => other !== lane && samePartition(other, lane)) ? `incarnation ${lane.topic_incarnation}` : null,
      lane.segments_count > drawn ? `latest ${drawn} of ${lane.segments_count.toLocaleString("en")}` : null,
      lane.offline_ms > 0 ? `offline ${duration(lane.offline_ms)}` : null, lane.segments_count ? null : "no leader known"].filter(Boolean).join(", ");
    const row = chart.add(box, [el("b", {}, name), el("small", {}, notes && ` ${notes}`)],
      28 + members.length * (strip + 1), partitionPainter(chart, lane, members), items);
    row.node.id = `lane-${clusterNumber}-${number}`;
    row.node.dataset.name = name.toLowerCase();
    row.node.dataset.severities = [...new Set(lane.findings.flatMap((f) => (f.proves_harm ? [f.severity, "harm"] : [f.severity])))].join(" ");
    row.node.setAttribute("aria-label", `partition ${name}, ${lane.segments_count} intervals. Arrow keys step through them, Enter lists them.`);
    row.lane = lane;
    row.listing = () => lane.segments.map((s) => [["leader", s.leader === NO_LEADER ? "none" : String(s.leader)], ...describeSegment(chart, lane, s)[1]]);
    row.rank = number;
    chart.lanes.push(row);
  });
}

const evidenceOf = ({ file, line }) => (file === null ? [] : [["evidence", `${file}:${line}`]]);

function describeSegment(chart, lane, s) {
  const assigned = lane.assignments.filter((a) => a.from_ms <= s.from_ms && (a.to_ms === null || a.to_ms > s.from_ms)).pop();
  const missing = assigned ? assigned.replicas.filter((id) => !s.isr.includes(id)) : [];
  return [`${lane.topic}-${lane.partition_id}: ${s.leader === NO_LEADER ? "no leader" : `leader ${s.leader}`}`, [
    ["leader epoch", String(s.leader_epoch)], ["ISR", `[${s.isr.join(", ")}]${missing.length ? `, out: ${missing.join(", ")}` : ""}`],
    ["partition epoch", s.partition_epoch ?? "unknown"], ["controller epoch", s.controller_epoch ?? "unknown"], ...chart.spell(s.from_ms, s.to_ms),
    ["written by", s.written_by ?? "unknown"], chart.certainty(s), ...evidenceOf(s)]];
}
