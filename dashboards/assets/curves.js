/* The offsets of one partition: a panel per replica, all on one scale of offsets. */

const PANEL = 92, OPEN_EDGE = 30;
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
  if (curve.seen && curve.seen.from === from && curve.seen.to === to) return curve.seen;
  let low = Infinity, high = -Infinity;
  const take = (value) => { if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); } };
  for (const [, , steps] of curve.r) {
    for (const step of steps) if (step[0] <= to && (step[1] ?? chart.end) >= from) for (let i = 2; i < 6; i++) take(step[i]);
  }
  for (const d of curve.d) if (d[0] <= to) { take(d[4]); take(d[5]); take(d[6]); }
  if (low > high) [low, high] = [0, 1];
  const room = Math.max((high - low) * 0.12, 1);
  curve.seen = { from, to, low: Math.max(0, low - room * 0.5), high: high + room };
  if (curve.seen.low < room * 0.5) curve.seen.low = -room * 0.25;
  return curve.seen;
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
function boundLine(context, steps, index, place, y, colour, width, dash) {
  context.beginPath();
  let last = null;
  for (const step of steps) {
    const at = step[index] === null ? null : place(step);
    if (!at) { last = null; continue; }
    const joined = last !== null && last[0] === step[0];
    if (joined) context.lineTo(at[0], y(step[index]));
    else context.moveTo(at[0], y(step[index]));
    context.lineTo(at[0] + at[1], y(step[index]));
    last = [step[1]];
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
function lostBand(context, d, x, width, y, colours) {
  const first = y(d[4]), least = d[5] === null ? first : y(d[5] + 1);
  const most = d[6] === null ? Math.min(first, least) - OPEN_EDGE : y(d[6] + 1);
  context.fillStyle = colours.error;
  context.globalAlpha = 0.2;
  context.fillRect(x, least, width - x, first - least);
  context.globalAlpha = 0.09;
  if (d[6] !== null) context.fillRect(x, most, width - x, least - most);
  context.globalAlpha = 1;
  context.strokeStyle = colours.error;
  context.lineWidth = 1;
  for (const [at, dash] of [[first, []], [least, []], [most, [5, 3]]]) {
    if (dash.length && (d[6] === null || most === least)) continue;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, at);
    context.lineTo(width, at);
    context.stroke();
  }
  context.setLineDash([]);
}

function electionLine(context, e, x, height, colours) {
  context.strokeStyle = e[4] ? colours.error : colours.text;
  context.lineWidth = e[4] ? 3 : 1;
  context.setLineDash(e[4] ? [] : [3, 3]);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.setLineDash([]);
}

/** A panel: the offsets of one replica, and what befell it. */
function panelPainter(chart, curve, replica, steps) {
  const colour = chart.brokers.get(replica) || "#888888";
  return (context, width, height, view, colours) => {
    const range = offsetRange(chart, curve), y = (offset) => height - 3 - ((offset - range.low) / (range.high - range.low)) * (height - 6);
    const where = (step) => { const end = step[1] ?? chart.end; return end < view.from || step[0] > view.to ? null : place(view, width, step[0], end); };
    for (const [from, to, leader] of curve.l) {
      const at = leader === replica && place(view, width, from, to ?? chart.end);
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
    for (const d of curve.d) if (d[0] < view.to) lostBand(context, d, Math.max(view.x(d[0], width), 0), width, y, colours);
    for (const d of curve.d) for (const [own, first, last] of d[10]) {
      const x = Math.max(view.x(d[0], width), 0);
      if (own === replica && x < width) hatch(context, x, y(last + 1), width - x, Math.max(y(first) - y(last + 1), 3), colours.text, 7);
    }
    for (const step of steps) {
      const at = where(step);
      if (!at) continue;
      boundArea(context, at[0], at[1], step[4], step[5], y, colour, 0.34);
      boundArea(context, at[0], at[1], step[2], step[3], y, colours.text, 0.26);
    }
    boundLine(context, steps, 5, where, y, colour, 2, [4, 3]);
    boundLine(context, steps, 4, where, y, colour, 4, []);
    boundLine(context, steps, 3, where, y, colours.text, 1, [2, 2]);
    boundLine(context, steps, 2, where, y, colours.text, 1.4, []);
    for (const e of curve.e) if (e[0] >= view.from && e[0] <= view.to) electionLine(context, e, view.x(e[0], width), height, colours);
    for (const [at, own, offset] of curve.x) if (own === replica && at >= view.from && at <= view.to) cutMark(context, view.x(at, width), y(offset), offset, width, height, colours);
    marks.forEach((offset) => tickNote(context, whole(offset), y(offset), height, colours));
    for (const d of curve.d) lossNotes(context, curve, d, replica, view, width, height, y, colours);
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
function lossNotes(context, curve, d, replica, view, width, height, y, colours) {
  const x = view.x(d[0], width) + 6;
  if (x > width || d[0] > view.to) return;
  const own = d[10].find((range) => range[0] === replica), middle = (a, b) => Math.min(Math.max((y(a) + y(b + 1)) / 2, 9), height - 9);
  if (own) note(context, `own records ${whole(own[1])}–${whole(own[2])}`, x, middle(own[1], own[2]), width, colours.text, colours.surface);
  else if (replica === d[1] || (!curve.r.some((r) => r[0] === d[1]) && replica === curve.r[0][0])) {
    note(context, `lost: ${countText(d[7], d[8])}`, x, middle(d[4], d[6] ?? d[5] ?? d[4]), width, colours.error, colours.surface);
  }
}

function fits(context, text, [x, width]) {
  context.font = "600 10px ui-sans-serif, system-ui, sans-serif";
  return context.measureText(text).width + 8 <= x + width - Math.max(x, 0);
}

/** Leaders as a band, elections as lines that go on through the panels. */
function leaderPainter(chart, curve) {
  const lane = chart.data.lanes.find((l) => l.t === curve.t && l.p === curve.p && l.i === curve.i);
  const offline = chart.words.kinds.indexOf("offline");
  return (context, width, height, view, colours) => {
    for (const [from, to, leader, epoch] of curve.l) {
      const at = place(view, width, from, to ?? chart.end);
      if (!at) continue;
      const election = curve.e.find((e) => e[1] === leader && e[2] === epoch);
      if (leader < 0) noLeader(context, at[0], 2, at[1], 15, colours);
      else {
        const colour = chart.brokers.get(leader) || "#888888";
        band(context, at[0], 2, Math.max(at[1] - 1, 1.5), 15, colour, false);
        const short = `${leader} · epoch ${epoch}`, unclean = election?.[4] ? " · unclean" : "";
        caption(context, [`leader ${short}${unclean && " · unclean election"}`, `${short}${unclean}`, short].find((text) => fits(context, text, at)) ?? "", at[0], 10, at[1], ink(colour));
      }
    }
    for (const [kind, from, to] of lane?.a ?? []) {
      const at = kind === offline && place(view, width, from, to ?? chart.end);
      if (at) noLeader(context, at[0], 2, at[1], 15, colours);
    }
    for (const e of curve.e) if (e[0] >= view.from && e[0] <= view.to) electionLine(context, e, view.x(e[0], width), height, colours);
  };
}

function describeStep(chart, curve, replica, step) {
  const [from, to, hwLower, hwUpper, leoLower, leoUpper, rows, sighted] = step;
  const led = curve.l.filter((l) => l[2] === replica && l[0] < (to ?? chart.end) && (l[1] ?? Infinity) > from)
    .map((l) => `epoch ${l[3]} from ${clock(chart.base + l[0])}${l[1] === null ? "" : ` to ${clock(chart.base + l[1])}`}`);
  const rests = sighted.map((n) => {
    const [kind, offset, of, source, first, last] = curve.g[n];
    const until = last !== null && last !== first ? ` to ${clock(chart.base + last)}` : "";
    const seen = first === null ? "at an unknown time" : `seen ${clock(chart.base + first)}${until}`;
    return `${chart.words.offsets[kind].replaceAll("_", " ")} ${whole(offset)} of replica ${of ?? "unknown"}, ${seen}, ${source.replaceAll("_", " ")}`;
  });
  return [`${curve.t}-${curve.p}, replica ${replica}`, [
    ["log end offset", boundsText(leoLower, leoUpper)], ["high watermark", boundsText(hwLower, hwUpper)], ...chart.spell(from, to),
    ...(led.length ? [["led", led.join("; ")]] : []),
    ...(rows > 1 ? [["joined", `${whole(rows)} intervals; the bounds hold for all`]] : []),
    ["rests on", rests.join("; ") || "other intervals"]]];
}

const lineOf = (chart, at) => (at.length ? [["evidence", `${chart.data.files[at[0]]}:${at[1]}`]] : []);

/** What befell the partition, or one replica of it, as items for hover and keys. */
function eventItems(chart, curve, replica) {
  const items = [];
  for (const d of curve.d) {
    const most = d[6] === null ? "not known" : whole(d[6]);
    items.push([d[0], null, () => [`Lost: ${countText(d[7], d[8])}`, [["from offset", whole(d[4])], ["to offset", d[5] === null ? `none proven, at most ${most}` : `at least ${whole(d[5])}, at most ${most}`],
      ["by", `leader ${d[1]}, epoch ${d[2]}, after leader ${d[3]}`], ["cause", chart.words.causes[d[9]].replaceAll("_", " ")], ["at", chart.when(d[0])], ...d[11].flatMap((at) => lineOf(chart, at))]], 1]);
    for (const [own, first, last] of d[10]) if (own === replica) items.push([d[0], null, () => [`Replica ${own} differs from its leader`,
      [["own records", `${whole(first)} to ${whole(last)}`], ["since", `epoch ${d[2]} of leader ${d[1]}, ${chart.when(d[0])}`]]], 1]);
  }
  for (const [at, leader, epoch, kind, unclean, before, ...line] of curve.e) items.push([at, at, () => [
    `Leader ${leader} elected at epoch ${epoch}`, [["at", chart.when(at)], ["election", `${chart.words.elections[kind].replaceAll("_", " ")}${unclean === null ? "" : unclean ? ", unclean: outside the ISR" : ", clean"}`],
      ["leader before", before === null ? "none" : before < 0 ? "none" : String(before)], ...lineOf(chart, line)]]]);
  for (const [at, own, offset, ...line] of curve.x) if (own === replica) items.push([at, at, () => [`Replica ${own} cut its log to ${whole(offset)}`, [["at", chart.when(at)], ...lineOf(chart, line)]]]);
  return items;
}

function addCurves(chart, clusterNumber) {
  chart.curves = chart.data.curves.map((curve, number) => {
    const node = $(`#curve-${clusterNumber}-${number}`), panels = $(".panels", node), name = `${curve.t}-${curve.p}`;
    const leaders = chart.add(panels, ["leader"], 20, leaderPainter(chart, curve), eventItems(chart, curve, null));
    leaders.node.setAttribute("aria-label", `leaders and elections of ${name}. Arrow keys step through them.`);
    for (const [replica, total, steps] of curve.r) {
      const own = curve.d.flatMap((d) => d[10]).filter((range) => range[0] === replica);
      const cut = steps.reduce((sum, step) => sum + step[6], 0) < total ? [el("br"), el("small", {}, `the latest of ${whole(total)} intervals`)] : [];
      const differs = own.length ? [el("br"), el("small", { class: "bad" }, `differs: own records ${own.map((r) => `${whole(r[1])}–${whole(r[2])}`).join(", ")}`)] : [];
      const items = steps.map((step) => [step[0], step[1], () => describeStep(chart, curve, replica, step)]);
      const row = chart.add(panels, [swatch(chart, replica), el("b", {}, `replica ${replica}`), ...differs, ...cut], PANEL,
        panelPainter(chart, curve, replica, steps), [...items, ...eventItems(chart, curve, replica)]);
      row.node.classList.add("panel");
      row.node.setAttribute("aria-label", `offsets of replica ${replica} of ${name}, ${steps.length} steps. Arrow keys step through them, Enter lists them.`);
      row.listing = () => steps.map((step) => describeStep(chart, curve, replica, step)[1]);
    }
    return node;
  });
}
