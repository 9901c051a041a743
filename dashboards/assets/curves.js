/* The offsets of one partition: a panel per replica, all on one scale of offsets. */

const PANEL = 92, OPEN_EDGE = 30;
const BOUNDS = ["high_watermark_lower", "high_watermark_upper", "log_end_offset_lower", "log_end_offset_upper"];
const whole = (number) => number.toLocaleString("en");

/** "284 to 306", "289 or more", "not known". */
function boundsText(lower, upper) {
  if (lower === null && upper === null) return "not known";
  if (upper === null) return `${whole(lower)} or more`;
  if (lower === null) return `${whole(upper)} or less`;
  return lower === upper ? whole(lower) : `${whole(lower)} to ${whole(upper)}`;
}

function countText(lower, upper) {
  if (upper === null) return `at least ${whole(lower)}, at most unknown`;
  return lower === upper ? whole(lower) : `at least ${whole(lower)}, at most ${whole(upper)}`;
}

/** Least and greatest offset that the window shows of any replica, with room above for open edges. */
function offsetRange(chart, curve) {
  const { from, to } = chart.view;
  if (curve.range && curve.range.from === from && curve.range.to === to) return curve.range;
  let low = Infinity, high = -Infinity;
  const take = (value) => { if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); } };
  for (const step of curve.steps) if (step.from_ms <= to && (step.to_ms ?? chart.end) >= from) BOUNDS.forEach((bound) => take(step[bound]));
  for (const loss of curve.losses) if (loss.at_ms <= to) { take(loss.lost_from_offset); take(loss.lost_to_offset_lower); take(loss.lost_to_offset_upper); }
  if (low > high) [low, high] = [0, 1];
  const room = Math.max((high - low) * 0.12, 1);
  curve.range = { from, to, low: Math.max(0, low - room * 0.5), high: high + room };
  if (curve.range.low < room * 0.5) curve.range.low = -room * 0.25;
  return curve.range;
}

function offsetTicks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough));
  const found = [];
  for (let at = Math.ceil(Math.max(low, 0) / step) * step; at <= high; at += step) found.push(at);
  return found;
}

/** The area between two bounds, fading out where one of them is not known. */
function boundArea(context, x, width, lower, upper, y, colour, alpha) {
  if (lower === null && upper === null) return;
  context.fillStyle = colour;
  context.globalAlpha = alpha;
  if (lower !== null && upper !== null) context.fillRect(x, y(upper), width, Math.max(y(lower) - y(upper), 0));
  else {
    const edge = y(lower ?? upper), end = lower !== null ? edge - OPEN_EDGE : edge + OPEN_EDGE;
    const fade = context.createLinearGradient(0, edge, 0, end);
    fade.addColorStop(0, colour);
    fade.addColorStop(1, `${colour}00`);
    context.fillStyle = fade;
    context.fillRect(x, Math.min(edge, end), width, OPEN_EDGE);
  }
  context.globalAlpha = 1;
}

/** One bound of all steps as a staircase, interrupted where it is not known. */
function boundLine(context, steps, bound, place, y, colour, width, dash) {
  context.beginPath();
  let last = null;
  for (const step of steps) {
    const at = step[bound] === null ? null : place(step);
    if (!at) { last = null; continue; }
    const joined = last !== null && last === step.from_ms;
    if (joined) context.lineTo(at[0], y(step[bound]));
    else context.moveTo(at[0], y(step[bound]));
    context.lineTo(at[0] + at[1], y(step[bound]));
    last = step.to_ms;
  }
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.stroke();
  context.setLineDash([]);
}

/** A text on a ground of its own, so that it is read on whatever is drawn there. */
function note(context, text, x, y, width, colour, ground) {
  context.font = "600 11px ui-sans-serif, system-ui, sans-serif";
  const wide = context.measureText(text).width + 8, left = Math.max(2, Math.min(x, width - wide - 2));
  if (wide > width) return;
  context.globalAlpha = 0.86;
  context.fillStyle = ground;
  context.fillRect(left, y - 8, wide, 16);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.textBaseline = "middle";
  context.fillText(text, left + 4, y);
}

/** The offsets that an election lost: full where proven, with a dashed edge up to where they may reach. */
function lostBand(context, loss, x, width, y, colours) {
  const { lost_to_offset_lower: lower, lost_to_offset_upper: upper } = loss;
  const first = y(loss.lost_from_offset), least = lower === null ? first : y(lower + 1);
  const most = upper === null ? Math.min(first, least) - OPEN_EDGE : y(upper + 1);
  context.fillStyle = colours.error;
  context.globalAlpha = 0.2;
  context.fillRect(x, least, width - x, first - least);
  context.globalAlpha = 0.09;
  if (upper !== null) context.fillRect(x, most, width - x, least - most);
  context.globalAlpha = 1;
  context.strokeStyle = colours.error;
  context.lineWidth = 1;
  for (const [at, dash] of [[first, []], [least, []], [most, [5, 3]]]) {
    if (dash.length && (upper === null || most === least)) continue;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, at);
    context.lineTo(width, at);
    context.stroke();
  }
  context.setLineDash([]);
}

function electionLine(context, election, x, height, colours) {
  context.strokeStyle = election.is_unclean ? colours.error : colours.text;
  context.lineWidth = election.is_unclean ? 3 : 1;
  context.setLineDash(election.is_unclean ? [] : [3, 3]);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.setLineDash([]);
}

/** The records that a replica kept of its own where its leader has others: [first offset, last offset] each. */
function ownRecords(loss, replica) {
  return loss.diverging_offsets.filter((_, n) => loss.diverging_replicas[n] === replica).map((range) => range.split("-").map(Number));
}

/** A panel: the offsets of one replica, and what happened to it. */
function panelPainter(chart, curve, replica, steps) {
  const colour = chart.brokers.get(replica) || "#888888";
  return (context, width, height, view, colours) => {
    const range = offsetRange(chart, curve), y = (offset) => height - 3 - ((offset - range.low) / (range.high - range.low)) * (height - 6);
    const where = (step) => { const end = step.to_ms ?? chart.end; return end < view.from || step.from_ms > view.to ? null : place(view, width, step.from_ms, end); };
    const isShown = ({ at_ms }) => at_ms >= view.from && at_ms <= view.to;
    for (const { from_ms, to_ms, leader } of curve.leaders) {
      const at = leader === replica && place(view, width, from_ms, to_ms ?? chart.end);
      if (!at) continue;
      context.globalAlpha = 0.13;
      context.fillStyle = colour;
      context.fillRect(at[0], 0, at[1], height);
      context.globalAlpha = 1;
    }
    context.font = "10px ui-sans-serif, system-ui, sans-serif";
    context.textBaseline = "middle";
    const marks = offsetTicks(range.low, range.high, 3);
    context.fillStyle = colours.line;
    marks.forEach((offset) => context.fillRect(0, Math.round(y(offset)), width, 1));
    const losses = curve.losses.map((loss) => ({ loss, x: Math.max(view.x(loss.at_ms, width), 0) }));
    for (const { loss, x } of losses) if (loss.at_ms < view.to) lostBand(context, loss, x, width, y, colours);
    for (const { loss, x } of losses) for (const [first, last] of ownRecords(loss, replica)) {
      if (x < width) hatch(context, x, y(last + 1), width - x, Math.max(y(first) - y(last + 1), 3), colours.text, 7);
    }
    for (const step of steps) {
      const at = where(step);
      if (!at) continue;
      boundArea(context, at[0], at[1], step.log_end_offset_lower, step.log_end_offset_upper, y, colour, 0.34);
      boundArea(context, at[0], at[1], step.high_watermark_lower, step.high_watermark_upper, y, colours.text, 0.26);
    }
    boundLine(context, steps, "log_end_offset_upper", where, y, colour, 2, [4, 3]);
    boundLine(context, steps, "log_end_offset_lower", where, y, colour, 4, []);
    boundLine(context, steps, "high_watermark_upper", where, y, colours.text, 1, [2, 2]);
    boundLine(context, steps, "high_watermark_lower", where, y, colours.text, 1.4, []);
    for (const election of curve.elections.filter(isShown)) electionLine(context, election, view.x(election.at_ms, width), height, colours);
    for (const cut of curve.truncations.filter(isShown)) {
      if (cut.replica_id === replica) cutMark(context, view.x(cut.at_ms, width), y(cut.to_offset), cut.to_offset, width, height, colours);
    }
    marks.forEach((offset) => tickNote(context, whole(offset), y(offset), height, colours));
    for (const loss of curve.losses) lossNotes(context, curve, loss, replica, view, width, height, y, colours);
  };
}

function tickNote(context, text, y, height, colours) {
  context.font = "10px ui-sans-serif, system-ui, sans-serif";
  context.textBaseline = "middle";
  const at = Math.min(Math.max(y, 7), height - 7);
  context.lineWidth = 3;
  context.strokeStyle = colours.surface;
  context.strokeText(text, 3, at);
  context.fillStyle = colours.text;
  context.fillText(text, 3, at);
}

/** Where a log was cut: an arrow down to the offset, and the offset. */
function cutMark(context, x, y, offset, width, height, colours) {
  const tip = Math.min(Math.max(y, 12), height - 1);
  context.fillStyle = colours.text;
  context.strokeStyle = colours.surface;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x, tip);
  context.lineTo(x - 6, tip - 11);
  context.lineTo(x + 6, tip - 11);
  context.closePath();
  context.stroke();
  context.fill();
  if (offset > 0) note(context, `cut to ${whole(offset)}`, x + 8, Math.max(tip - 14, 9), width, colours.text, colours.surface);
}

/** What the loss means for this replica, where it leads, or keeps records of its own. */
function lossNotes(context, curve, loss, replica, view, width, height, y, colours) {
  const x = view.x(loss.at_ms, width) + 6;
  if (x > width || loss.at_ms > view.to) return;
  const middle = (a, b) => Math.min(Math.max((y(a) + y(b + 1)) / 2, 9), height - 9);
  const own = ownRecords(loss, replica)[0], replicas = curve.steps.map((step) => step.replica_id);
  const { lost_from_offset: from, lost_to_offset_lower: lower, lost_to_offset_upper: upper } = loss;
  if (own) note(context, `own records ${whole(own[0])}–${whole(own[1])}`, x, middle(...own), width, colours.text, colours.surface);
  else if (replica === loss.leader || (!replicas.includes(loss.leader) && replica === Math.min(...replicas))) {
    note(context, `lost: ${countText(loss.lost_count_lower, loss.lost_count_upper)}`, x, middle(from, upper ?? lower ?? from), width, colours.error, colours.surface);
  }
}

function fits(context, text, [x, width]) {
  context.font = "600 10px ui-sans-serif, system-ui, sans-serif";
  return context.measureText(text).width + 8 <= x + width - Math.max(x, 0);
}

/** Leaders as a band, elections as lines that go on through the panels. */
function leaderPainter(chart, curve) {
  const lane = chart.data.partitions.find((other) => sameIncarnation(other, curve));
  return (context, width, height, view, colours) => {
    for (const { from_ms, to_ms, leader, leader_epoch: epoch } of curve.leaders) {
      const at = place(view, width, from_ms, to_ms ?? chart.end);
      if (!at) continue;
      const election = curve.elections.find((e) => e.observed_leader === leader && e.leader_epoch === epoch);
      if (leader < 0) noLeader(context, at[0], 2, at[1], 15, colours);
      else {
        const colour = chart.brokers.get(leader) || "#888888";
        band(context, at[0], 2, Math.max(at[1] - 1, 1.5), 15, colour, false);
        const short = `${leader} · epoch ${epoch}`, unclean = election?.is_unclean ? " · unclean" : "";
        caption(context, [`leader ${short}${unclean && " · unclean election"}`, `${short}${unclean}`, short].find((text) => fits(context, text, at)) ?? "", at[0], 10, at[1], ink(colour));
      }
    }
    for (const { kind, from_ms, to_ms } of lane?.unavailable ?? []) {
      const at = kind === "offline" && place(view, width, from_ms, to_ms ?? chart.end);
      if (at) noLeader(context, at[0], 2, at[1], 15, colours);
    }
    for (const e of curve.elections) if (e.at_ms >= view.from && e.at_ms <= view.to) electionLine(context, e, view.x(e.at_ms, width), height, colours);
  };
}

function describeStep(chart, curve, step) {
  const { from_ms: from, to_ms: to, replica_id: replica } = step;
  const led = curve.leaders.filter((l) => l.leader === replica && l.from_ms < (to ?? chart.end) && (l.to_ms ?? Infinity) > from)
    .map((l) => `epoch ${l.leader_epoch} from ${clock(chart.base + l.from_ms)}${l.to_ms === null ? "" : ` to ${clock(chart.base + l.to_ms)}`}`);
  const rests = step.observations.map((number) => {
    const { offset_kind: kind, offset, replica_id: of, source, from_ms: first, to_ms: last } = curve.observations[number];
    const until = last !== null && last !== first ? ` to ${clock(chart.base + last)}` : "";
    const time = first === null ? "at an unknown time" : `seen ${clock(chart.base + first)}${until}`;
    return `${named(kind)} ${whole(offset)} of replica ${of ?? "unknown"}, ${time}, ${named(source)}`;
  });
  return [`${curve.topic}-${curve.partition_id}, replica ${replica}`, [
    ["log end offset", boundsText(step.log_end_offset_lower, step.log_end_offset_upper)],
    ["high watermark", boundsText(step.high_watermark_lower, step.high_watermark_upper)], ...chart.spell(from, to),
    ...(led.length ? [["led", led.join("; ")]] : []),
    ...(step.rows > 1 ? [["joined", `${whole(step.rows)} intervals; the bounds hold for all`]] : []),
    ["rests on", rests.join("; ") || "other intervals"]]];
}

/** What happened to the partition, or to one replica of it, as items for hover and keys. */
function eventItems(chart, curve, replica) {
  const items = [];
  for (const loss of curve.losses) {
    const { at_ms: at, leader, leader_epoch: epoch, lost_to_offset_lower: lower, lost_to_offset_upper: upper } = loss;
    const most = upper === null ? "not known" : whole(upper);
    items.push({ from: at, to: null, isLast: true, describe: () => [`Lost: ${countText(loss.lost_count_lower, loss.lost_count_upper)}`,
      [["from offset", whole(loss.lost_from_offset)], ["to offset", lower === null ? `none proven, at most ${most}` : `at least ${whole(lower)}, at most ${most}`],
        ["by", `leader ${leader}, epoch ${epoch}, after leader ${loss.previous_leader}`], ["cause", named(loss.cause)], ["at", chart.when(at)],
        ...loss.evidence.flatMap(evidenceOf)]] });
    for (const [first, last] of ownRecords(loss, replica)) items.push({ from: at, to: null, isLast: true, describe: () => [
      `Replica ${replica} differs from its leader`,
      [["own records", `${whole(first)} to ${whole(last)}`], ["since", `epoch ${epoch} of leader ${leader}, ${chart.when(at)}`]]] });
  }
  for (const e of curve.elections) items.push({ from: e.at_ms, to: e.at_ms, describe: () => [
    `Leader ${e.observed_leader} elected at epoch ${e.leader_epoch}`, [["at", chart.when(e.at_ms)],
      ["election", `${named(e.election_kind)}${e.is_unclean === null ? "" : e.is_unclean ? ", unclean: outside the ISR" : ", clean"}`],
      ["leader before", (e.previous_leader ?? NO_LEADER) < 0 ? "none" : String(e.previous_leader)], ...evidenceOf(e)]] });
  for (const cut of curve.truncations) if (cut.replica_id === replica) items.push({ from: cut.at_ms, to: cut.at_ms, describe: () => [
    `Replica ${replica} cut its log to ${whole(cut.to_offset)}`, [["at", chart.when(cut.at_ms)], ...evidenceOf(cut)]] });
  return items;
}

function addCurves(chart, clusterNumber) {
  chart.curves = chart.data.offsets.map((curve, number) => {
    const node = $(`#curve-${clusterNumber}-${number}`), panels = $(".panels", node), name = `${curve.topic}-${curve.partition_id}`;
    const leaders = chart.add(panels, ["leader"], 20, leaderPainter(chart, curve), eventItems(chart, curve, null));
    leaders.node.setAttribute("aria-label", `leaders and elections of ${name}. Arrow keys step through them.`);
    for (const [replica, steps] of byNumber(grouped(curve.steps, (step) => step.replica_id))) {
      const own = curve.losses.flatMap((loss) => ownRecords(loss, replica)), total = steps[0].rows_total;
      const cut = steps.reduce((sum, step) => sum + step.rows, 0) < total ? [el("br"), el("small", {}, `the latest of ${whole(total)} intervals`)] : [];
      const differs = own.length ? [el("br"), el("small", { class: "bad" }, `differs: own records ${own.map((r) => `${whole(r[0])}–${whole(r[1])}`).join(", ")}`)] : [];
      const items = steps.map((step) => ({ from: step.from_ms, to: step.to_ms, describe: () => describeStep(chart, curve, step) }));
      const row = chart.add(panels, [swatch(chart, replica), el("b", {}, `replica ${replica}`), ...differs, ...cut], PANEL,
        panelPainter(chart, curve, replica, steps), [...items, ...eventItems(chart, curve, replica)]);
      row.node.classList.add("panel");
      row.node.setAttribute("aria-label", `offsets of replica ${replica} of ${name}, ${steps.length} steps. Arrow keys step through them, Enter lists them.`);
      row.listing = () => steps.map((step) => describeStep(chart, curve, step)[1]);
    }
    return node;
  });
}
