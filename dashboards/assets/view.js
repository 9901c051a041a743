"use strict";
/* Small helpers, and the window of time that all charts of one cluster share. */

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

/** An element with attributes and children; texts become text nodes, never markup. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** The reviver of the page's data: rows that were sent as columns, as objects with named fields again; see
 *  dashboards/payload.py. */
function rowsOfColumns(_, value) {
  if (!value?.columns) return value;
  const columns = Object.entries(value.columns).map(([name, column]) =>
    [name, Array.isArray(column) ? column : column.rows.map((number) => column.values[number])]);
  return columns[0][1].map((_, row) => Object.fromEntries(columns.map(([name, column]) => [name, column[row]])));
}

/** A word of a vocabulary as prose. */
const named = (word) => word.replaceAll("_", " ");

const pad = (number, width = 2) => String(number).padStart(width, "0");

/** "2026-11-21 10:04:12.310", UTC. */
function instant(ms) {
  const d = new Date(Math.floor(ms));
  return `${d.getUTCFullYear()}-${pad(d.getUTCMonth() + 1)}-${pad(d.getUTCDate())} ${clock(ms)}`;
}

function clock(ms) {
  const d = new Date(Math.floor(ms));
  return `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}.${pad(d.getUTCMilliseconds(), 3)}`;
}

function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(3)} s`;
  if (ms < 3600000) return `${Math.floor(ms / 60000)} min ${((ms % 60000) / 1000).toFixed(1)} s`;
  if (ms < 86400000) return `${Math.floor(ms / 3600000)} h ${pad(Math.floor(ms / 60000) % 60)} min`;
  return `${Math.floor(ms / 86400000)} d ${pad(Math.floor(ms / 3600000) % 24)} h`;
}

/** The visible part of the time axis, in ms since the cluster's first instant. */
class View {
  constructor(first, last, from, to) {
    const margin = Math.max(1, (last - first) * 0.01);
    this.min = first - margin;
    this.max = last + margin;
    this.home = [Math.max(this.min, from - (to - from) * 0.01), Math.min(this.max, to + (to - from) * 0.01 + 1)];
    [this.from, this.to] = this.home;
    this.listeners = [];
  }

  get span() { return this.to - this.from; }
  x(time, width) { return ((time - this.from) / this.span) * width; }
  time(x, width) { return this.from + (x / width) * this.span; }

  /** Shows [from, to], moved and shortened so that it lies within what is known. */
  set(from, to) {
    const span = Math.min(Math.max(to - from, 2), this.max - this.min);
    this.from = Math.min(Math.max(from, this.min), this.max - span);
    this.to = this.from + span;
    this.listeners.forEach((listener) => listener());
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(fraction) { this.set(this.from + this.span * fraction, this.to + this.span * fraction); }
  reset() { this.set(...this.home); }
  all() { this.set(this.min, this.max); }
  centre(time, span = this.span) { this.set(time - span / 2, time + span / 2); }
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
  72e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6];

/** Instants for ticks, at least 90 pixels apart, on round times of UTC. */
function ticks(view, base, width) {
  const wanted = (view.span / width) * 90;
  const step = STEPS.find((s) => s >= wanted) || STEPS[STEPS.length - 1];
  const found = [];
  for (let t = Math.ceil((base + view.from) / step) * step; t <= base + view.to; t += step) found.push(t - base);
  return { step, found };
}

function tickLabel(ms, step) {
  const text = instant(ms);
  if (step >= 864e5) return text.slice(0, 10);
  if (step >= 6e4) return text.slice(11, 16);
  return step >= 1000 ? text.slice(11, 19) : text.slice(11);
}
