/* The page: pointer and keys, filters, links from findings to lanes, the address's #parameters. */

const tip = el("div", { class: "tip", role: "status", "aria-live": "polite" });

function showTip(x, y, found) {
  tip.replaceChildren(...found.slice(0, 3).map((item) => {
    const [title, pairs] = item.describe();
    return el("div", { class: "item" }, el("strong", {}, title),
      el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))])));
  }));
  if (found.length > 3) tip.append(el("small", {}, `${found.length - 3} more here: zoom in`));
  tip.classList.toggle("shown", found.length > 0);
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}
const hideTip = () => tip.classList.remove("shown");

/** The axis above the rows. */
function makeAxis(chart, node) {
  const canvas = el("canvas", { "aria-hidden": "true" }), day = el("span", { class: "day" });
  $(".plot", node).append(canvas);
  $(".label", node).append(day);
  chart.axis = { paint() {
    const width = $(".plot", node).clientWidth, scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = 24 * scale;
    const context = canvas.getContext("2d"), { step, found } = ticks(chart.view, chart.base, width);
    context.scale(scale, scale);
    context.font = "11px ui-sans-serif, system-ui, sans-serif";
    context.fillStyle = chart.colours.text;
    found.forEach((time) => {
      const x = chart.view.x(time, width), text = tickLabel(chart.base + time, step);
      context.fillRect(Math.round(x), 18, 1, 6);
      context.fillText(text, Math.max(0, Math.min(x - context.measureText(text).width / 2, width - context.measureText(text).width)), 13);
    });
    day.textContent = `${instant(chart.base + chart.view.from).slice(0, 10)} UTC, ${duration(chart.view.span)}`;
  } };
}

function bindPointer(chart, box) {
  let drag = null;
  const rowOf = (event) => event.target.closest?.(".row")?.row;
  const spot = (event, plot) => event.clientX - plot.getBoundingClientRect().left;
  box.addEventListener("pointerdown", (event) => {
    const plot = event.target.closest(".plot");
    if (plot && event.button === 0) drag = { x: event.clientX, from: chart.view.from, to: chart.view.to, width: plot.clientWidth, moved: false };
  });
  box.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) {
      const shift = ((drag.x - event.clientX) / drag.width) * (drag.to - drag.from);
      drag.moved ||= Math.abs(drag.x - event.clientX) > 3;
      if (drag.moved) { hideTip(); chart.view.set(drag.from + shift, drag.to + shift); }
      return;
    }
    const row = rowOf(event);
    if (!row || !event.target.closest(".plot")) return hideTip();
    showTip(event.clientX, event.clientY, row.at(spot(event, row.plot), row.plot.clientWidth));
  });
  addEventListener("pointerup", () => { if (drag?.moved) saveHash(chart); drag = null; });
  box.addEventListener("pointerleave", hideTip);
  box.addEventListener("click", (event) => {
    const row = rowOf(event);
    if (row?.listing && event.target.closest(".label")) toggleTable(row);
    else if (row && event.target.closest(".plot")) showTip(event.clientX, event.clientY, row.at(spot(event, row.plot), row.plot.clientWidth));
  });
  box.addEventListener("wheel", (event) => {
    const plot = event.target.closest(".plot");
    if (!plot) return;
    if (event.ctrlKey || event.metaKey) chart.view.zoom(Math.exp(event.deltaY * 0.004), chart.view.time(spot(event, plot), plot.clientWidth));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) chart.view.pan((event.deltaX || event.deltaY) / plot.clientWidth);
    else return;
    event.preventDefault();
  }, { passive: false });
  box.addEventListener("dblclick", (event) => { if (event.target.closest(".plot")) chart.view.reset(); });
}

function bindKeys(chart, box) {
  box.addEventListener("keydown", (event) => {
    const row = event.target.row;
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && event.shiftKey) chart.view.pan(step * 0.2);
    else if (step) stepThrough(chart, row, step);
    else if (move) {
      const shown = $$(".row", chart.section).filter((node) => node.row && node.checkVisibility());
      shown[shown.indexOf(row.node) + move]?.focus();
    } else if (event.key === "Enter" && row.listing) toggleTable(row);
    else if (event.key === "+" || event.key === "=") chart.view.zoom(0.6, row.mark ?? undefined);
    else if (event.key === "-") chart.view.zoom(1 / 0.6, row.mark ?? undefined);
    else if (event.key === "0") chart.view.reset();
    else if (event.key === "Escape") { row.mark = null; hideTip(); row.paint(); }
    else return;
    event.preventDefault();
  });
}

function stepThrough(chart, row, step) {
  const ordered = [...row.items].sort((a, b) => a.from - b.from);
  if (!ordered.length) return;
  row.cursor = Math.min(Math.max(row.cursor + step, 0), ordered.length - 1);
  const item = ordered[row.cursor], box = row.plot.getBoundingClientRect();
  row.mark = item.from;
  if (item.from < chart.view.from || item.from > chart.view.to) chart.view.centre(item.from);
  row.paint();
  showTip(box.left + chart.view.x(item.from, box.width), box.bottom, [item]);
}

/** The row's intervals as a table below it, made when asked for. */
function toggleTable(row) {
  if (row.table) { row.table.remove(); row.table = null; return; }
  const body = row.listing().map((pairs) => new Map(pairs)), names = [...new Set(body.flatMap((row) => [...row.keys()]))];
  row.table = el("div", { class: "scroll intervals" }, el("table", {},
    el("thead", {}, el("tr", {}, ...names.map((name) => el("th", {}, name)))),
    el("tbody", {}, ...body.map((own) => el("tr", {}, ...names.map((name) => el("td", {}, String(own.get(name) ?? ""))))))));
  row.node.after(row.table);
}

/** Lanes shown at once, until more are asked for. */
const LANES = 50;

/** Shows lanes and findings that match the text and the severity, of the lanes the first ``most``, and says how many. */
function applyFilter(chart, most = LANES) {
  const text = $(".filter-text", chart.section).value.trim().toLowerCase(), severity = $(".filter-severity", chart.section).value;
  const fits = (row) => row.node.dataset.name.includes(text) && (!severity || row.node.dataset.severities.split(" ").includes(severity));
  const fitting = chart.lanes.filter(fits), shown = new Set(fitting.slice(0, most)), more = $(".more", chart.section);
  for (const row of chart.lanes) {
    row.node.hidden = !shown.has(row);
    if (row.table) row.table.hidden = row.node.hidden;
  }
  more.hidden = fitting.length <= most;
  more.textContent = `${Math.min(LANES, fitting.length - most)} more of ${fitting.length} lanes`;
  more.onclick = () => applyFilter(chart, most + LANES);
  chart.curves.forEach((node) => { node.hidden = !node.dataset.name.includes(text); });
  $$(".finding", chart.section).forEach((node) => {
    node.hidden = !(node.dataset.place.toLowerCase().includes(text) && (!severity || node.dataset.severity.split(" ").includes(severity)));
  });
  $(".filter-count", chart.section).textContent = `${shown.size} of ${chart.lanes.length} lanes`;
}

function sortLanes(chart, order) {
  const byName = (a, b) => a.lane.topic.localeCompare(b.lane.topic, "en") || a.lane.partition_id - b.lane.partition_id || a.rank - b.rank;
  const box = $(".lanes", chart.section);
  chart.lanes.sort(order === "name" ? byName : (a, b) => a.rank - b.rank);
  for (const row of chart.lanes) box.append(row.node, ...(row.table ? [row.table] : []));
  applyFilter(chart);
}

/** Scrolls to the finding's lane and marks its instant. */
function showFinding(chart, button) {
  const at = Number(button.dataset.at) - chart.base, row = document.getElementById(button.dataset.lane)?.row;
  chart.rows.forEach((other) => { other.mark = at; });
  if (at < chart.view.from || at > chart.view.to) chart.view.centre(at);
  else chart.refresh();
  const goal = row ? row.node : $(".timelines", chart.section);
  if (row) row.node.hidden = false;
  goal.scrollIntoView({ block: row ? "center" : "start" });
  goal.focus?.({ preventScroll: true });
}

/** Shows the seconds around an instant of a partition's curves, and marks it. */
function showInstant(chart, button) {
  const at = Number(button.dataset.zoom) - chart.base;
  chart.rows.forEach((other) => { other.mark = at; });
  chart.view.centre(at, Math.min(chart.view.span, 20000));
  const panels = button.closest(".curve");
  panels.scrollIntoView({ block: "nearest" });
  $(".row", panels)?.focus({ preventScroll: true });
}

function saveHash(chart) {
  const at = chart.view, parts = new URLSearchParams();
  const text = $(".filter-text", chart.section).value, severity = $(".filter-severity", chart.section).value;
  parts.set("cluster", chart.number);
  if (text) parts.set("q", text);
  if (severity) parts.set("severity", severity);
  if (at.from !== at.home[0] || at.to !== at.home[1]) { parts.set("from", Math.round(chart.base + at.from)); parts.set("to", Math.round(chart.base + at.to)); }
  try { history.replaceState(null, "", `#${parts}`); } catch { /* a sandboxed frame has no address to write */ }
}

function loadHash(charts) {
  const parts = new URLSearchParams(location.hash.slice(1)), chart = charts[Number(parts.get("cluster") || 0)];
  if (!chart) return;
  if (parts.has("q")) $(".filter-text", chart.section).value = parts.get("q");
  if (parts.has("severity")) $(".filter-severity", chart.section).value = parts.get("severity");
  if (parts.has("from") && parts.has("to")) chart.view.set(Number(parts.get("from")) - chart.base, Number(parts.get("to")) - chart.base);
  applyFilter(chart);
  const finding = parts.get("finding") && document.getElementById(parts.get("finding"));
  if (finding) { finding.open = true; showFinding(chart, $("[data-at]", finding)); }
}

function start() {
  const data = JSON.parse($("#data").textContent, rowsOfColumns);
  const charts = data.clusters.map((cluster, number) => {
    const section = $(`#cluster-${number}`), chart = new Chart(section, cluster), box = $(".timelines", section);
    chart.number = number;
    makeAxis(chart, $(".axis", section));
    addTrouble(chart, $(".counts", section));
    addTopics(chart, $(".topics", section));
    addControllers(chart, $(".controllers", section));
    addBrokers(chart, $(".liveness", section));
    addCurves(chart, number);
    addPartitions(chart, $(".lanes", section), number);
    addEvidence(chart, $(".covered", section));
    chart.data.broker_ids.forEach((id) => $(".legend-brokers", section).append(el("span", {}, swatch(chart, id), ` ${id}`)));
    bindPointer(chart, box);
    bindKeys(chart, box);
    const act = { in: () => chart.view.zoom(0.5), out: () => chart.view.zoom(2), left: () => chart.view.pan(-0.3), right: () => chart.view.pan(0.3),
      home: () => chart.view.reset(), all: () => chart.view.all(), findings: () => fitFindings(chart) };
    $$("[data-act]", section).forEach((button) => button.addEventListener("click", () => { act[button.dataset.act](); saveHash(chart); }));
    $$("button[data-at]", section).forEach((button) => button.addEventListener("click", () => showFinding(chart, button)));
    $$("button[data-zoom]", section).forEach((button) => button.addEventListener("click", () => { showInstant(chart, button); saveHash(chart); }));
    $(".filter-text", section).addEventListener("input", () => { applyFilter(chart); saveHash(chart); });
    $(".filter-severity", section).addEventListener("change", () => { applyFilter(chart); saveHash(chart); });
    $(".sort", section).addEventListener("change", (event) => sortLanes(chart, event.target.value));
    applyFilter(chart);
    chart.axis.paint();
    return chart;
  });
  charts.forEach((chart) => $$("button[data-saves]", chart.section).forEach((button) => button.addEventListener("click", () => saveFindings(chart, button.dataset.saves))));
  $$("button[data-copies]").forEach((button) => button.addEventListener("click", () => copyTable(button)));
  $$("[data-local]").forEach((place) => {
    const at = new Date(Number(place.dataset.local));
    if (at.getTimezoneOffset()) place.textContent = `${at.toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" })} here`;
  });
  document.body.append(tip);
  loadHash(charts);
  addEventListener("hashchange", () => loadHash(charts));
  const repaint = () => charts.forEach((chart) => { chart.colours = theme(); chart.refresh(); });
  addEventListener("resize", repaint);
  addEventListener("scroll", hideTip, { passive: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  addEventListener("beforeprint", () => charts.forEach((chart) => chart.paintAll()));
  addEventListener("afterprint", repaint);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

/** A finding with the names and values of the columns of `ask findings`. */
function findingRow(chart, node, cluster_id) {
  const of = chart.data.findings[Number(node.id.split("-")[2])], at = Math.round((chart.base + of.at_ms) * 1000);
  const text = (name) => $(`[data-field=${name}]`, node)?.textContent ?? null;
  return { cluster_id, severity: of.severity, harm: of.harm, rule_id: of.rule_id, divergence_type: of.divergence_type,
    detected_at: new Date(Math.floor(at / 1000)).toISOString().replace("Z", `${pad(at % 1000, 3)}Z`),
    topic: of.topic, partition_id: of.partition_id, broker_id: of.broker_id, replica_id: of.replica_id,
    explanation: text("explanation"), expected: text("expected"), observed: text("observed"), alternatives: of.alternatives,
    known_issue: text("known_issue"), inferred_from: of.inferred_from, evidence: $$("[data-record]", node).map((record) => record.dataset.record) };
}

/** A field of CSV. Text that a spreadsheet would run has a quote before it, as jobs/sql/output.py writes it. */
function csvField(value) {
  if (value === null || typeof value === "number") return String(value ?? "");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const runs = /^(\s*[=+\-@|\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/.test(text) && !/^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text);
  const safe = runs ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Saves the findings that are listed as a file, without asking any server. */
function saveFindings(chart, format) {
  const name = $("h2", chart.section).textContent.replace(/^Cluster /, "");
  const rows = $$(".finding", chart.section).filter((node) => !node.hidden).map((node) => findingRow(chart, node, name));
  const lines = rows.map((row) => Object.values(row).map(csvField).join(","));
  const text = format === "csv" ? [Object.keys(rows[0] ?? {}).join(","), ...lines, ""].join("\n") : `${JSON.stringify(rows, null, 1)}\n`;
  const address = URL.createObjectURL(new Blob([text], { type: format === "csv" ? "text/csv" : "application/json" }));
  el("a", { href: address, download: `findings-${chart.number + 1}.${format}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** Copies a table as lines with tabs, without the columns that say where on this machine it comes from. */
async function copyTable(button) {
  const table = document.getElementById(button.dataset.copies), status = button.nextElementSibling;
  const text = [...table.rows].map((row) => [...row.cells].filter((cell) => !("private" in cell.dataset))
    .map((cell) => cell.textContent.trim()).join("\t")).join("\n");
  try {
    await navigator.clipboard.writeText(text);
    status.textContent = `${table.tBodies[0].rows.length} lines copied`;
  } catch {
    getSelection().selectAllChildren(table);
    status.textContent = "Not allowed here: the list is selected, copy it with Ctrl+C";
  }
}

function fitFindings(chart) {
  const times = chart.data.findings.map((f) => f.at_ms);
  if (!times.length) return;
  const low = Math.min(...times), high = Math.max(...times), margin = Math.max((high - low) * 0.1, 1000);
  chart.view.set(low - margin, high + margin);
}

start();
