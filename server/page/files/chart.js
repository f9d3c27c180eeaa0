// Charts as SVG: a budget's bar, thirty days as a sparkline, and spend over time as steps below the cap.
import { el, svg } from './dom.js';
import { day, grouped, moment, percent, serverNow, shortName } from './format.js';

// Shares of the cap that add up to at most the whole width; what exceeds the cap is cut off here and told in words.
export function budgetBar(budget) {
  const width = 160;
  const posted = Math.min(100, budget.posted_percent);
  const reserved = Math.min(100 - posted, budget.reserved_percent);
  const x = (share) => (share * width) / 100;
  const over = budget.posted_percent + budget.reserved_percent > 100.05;
  return svg('svg', { class: over ? 'bar over' : 'bar', viewBox: `0 0 ${width} 12`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('rect', { class: 'left', width, height: 12 }),
    svg('rect', { class: 'posted', width: x(posted), height: 12 }),
    svg('rect', { class: 'reserved', x: x(posted), width: x(reserved), height: 12 }));
}

export function sparkline(daily) {
  const values = daily.map(Number);
  const most = Math.max(1, ...values);
  const step = 4;
  // Two paths and not a shape for each day: a thousand rows are to be drawn at once.
  let idle = '';
  let posted = '';
  values.forEach((value, i) => {
    const height = value === 0 ? 1 : Math.max(2, Math.round((value / most) * 22));
    const bar = `M${i * step} 24v-${height}h${step - 1}v${height}z`;
    if (value === 0) idle += bar;
    else posted += bar;
  });
  const active = values.filter((value) => value > 0).length;
  return svg('svg', { class: 'spark', viewBox: `0 0 ${30 * step - 1} 24`, role: 'img',
    'aria-label': active === 0 ? 'nothing posted in 30 days' : `posted on ${active} of the last 30 days` },
  svg('path', { class: 'idle', d: idle }), svg('path', { class: 'posted', d: posted }));
}

const MARGIN = { top: 14, right: 12, bottom: 26, left: 46 };
const HEIGHT = 240;

function ticks(most) {
  const step = [5, 10, 20, 25, 50, 100, 200, 500, 1000].find((candidate) => most / candidate <= 5) ?? most / 4;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

function timeTicks(from, to, room) {
  const count = Math.max(2, Math.min(7, Math.floor(room / 110)));
  return Array.from({ length: count }, (_, i) => from + ((to - from) * i) / (count - 1));
}

function timeText(time, range) {
  const text = new Date(time).toISOString();
  if (range > 3 * 86_400_000) return text.slice(0, 10);
  return range > 600_000 ? text.slice(5, 16).replace('T', ' ') : text.slice(11, 19);
}

// A line that holds each value until the next.
function steps(points, x, y, end) {
  let path = '';
  points.forEach(({ time, value }, i) => {
    path += i === 0 ? `M${x(time)} ${y(value)}` : `H${x(time)}V${y(value)}`;
  });
  return `${path}H${x(end)}`;
}

const series = (history, of) => history.points.map((point) => ({ time: Date.parse(point.time), value: of(point) }));
// Shares of the cap as it is now, so that the line of the cap is at 100 today.
function share(history) {
  const cap = Math.max(1, Number(history.points.at(-1)?.cap_units ?? 1));
  return (units) => (100 * Number(units)) / cap;
}

function frame(width, most, from, to) {
  const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const range = Math.max(1, to - from);
  const x = (time) => (MARGIN.left + ((time - from) / range) * inner.width).toFixed(1);
  const y = (value) => (MARGIN.top + (1 - value / most) * inner.height).toFixed(1);
  const axes = ticks(most).flatMap((value) => [
    svg('line', { class: 'grid', x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }),
    svg('text', { x: MARGIN.left - 6, y: y(value), class: 'tick y' }, `${value}%`),
  ]);
  const times = timeTicks(from, to, inner.width);
  axes.push(...times.map((time, i) => svg('text', { x: x(time), y: HEIGHT - 8,
    class: `tick x ${i === 0 ? 'first' : i === times.length - 1 ? 'last' : ''}` }, timeText(time, range))));
  return { x, y, axes };
}

// One budget: what is posted as a filled step, what is reserved hatched on top of it, the cap as a dashed line.
function oneBudget(history, width) {
  const of = share(history);
  const posted = series(history, (point) => of(point.posted_units));
  const used = series(history, (point) => of(BigInt(point.posted_units) + BigInt(point.reserved_units)));
  const cap = series(history, (point) => of(point.cap_units));
  const from = posted[0].time;
  const to = Math.max(serverNow(), posted.at(-1).time + 1000);
  const most = 1.08 * Math.max(...used.map((p) => p.value), ...cap.map((p) => p.value));
  const { x, y, axes } = frame(width, most, from, to);
  const area = (points) => `${steps(points, x, y, to)}V${y(0)}H${x(from)}Z`;
  return [...axes,
    svg('path', { class: 'area-reserved', d: area(used) }),
    svg('path', { class: 'area-posted', d: area(posted) }),
    svg('path', { class: 'line-used', d: steps(used, x, y, to) }),
    svg('path', { class: 'line-posted', d: steps(posted, x, y, to) }),
    svg('path', { class: 'line-cap', d: steps(cap, x, y, to) }),
    svg('text', { class: 'cap-label', x: width - MARGIN.right, y: Number(y(cap.at(-1).value)) - 5 }, 'cap')];
}

// Several budgets: each a line of its own, told apart by its dashes and its number as well as by its colour.
function manyBudgets(histories, width) {
  const lines = histories.map((history) => {
    const of = share(history);
    return series(history, (point) => of(BigInt(point.posted_units) + BigInt(point.reserved_units)));
  });
  const from = Math.min(...lines.map((line) => line[0].time));
  const to = Math.max(serverNow(), ...lines.map((line) => line.at(-1).time + 1000));
  const most = Math.max(108, 1.08 * Math.max(...lines.flat().map((point) => point.value)));
  const { x, y, axes } = frame(width, most, from, to);
  const drawn = lines.map((line, i) => svg('path', { class: `line line-${i + 1}`, d: steps(line, x, y, to) }));
  const labels = lines.map((line, i) => svg('text', { class: 'line-label', x: Number(x(to)) - 3 - 11 * i, y: Number(y(line.at(-1).value)) - 4 }, String(i + 1)));
  const cap = svg('path', { class: 'line-cap', d: `M${MARGIN.left} ${y(100)}H${width - MARGIN.right}` });
  return [...axes, ...drawn, cap, ...labels, svg('text', { class: 'cap-label left-label', x: MARGIN.left + 4, y: Number(y(100)) - 5 }, 'cap')];
}

const TABLE_ROWS = 20;

function asTable(history) {
  const of = share(history);
  const rows = history.points.slice(-TABLE_ROWS).reverse().map((point) => el('tr', {},
    el('td', {}, moment(point.time)),
    ...[point.posted_units, point.reserved_units, point.cap_units].map((units) =>
      el('td', { class: 'number' }, `${grouped(units)} (${percent(of(units))})`))));
  return el('details', { class: 'as-table' }, el('summary', { 'data-key': 'chart-table' }, 'The newest steps as a table'),
    el('table', {}, el('thead', {}, el('tr', {}, ...['Time (UTC)', 'Posted units', 'Reserved units', 'Cap units'].map((head, i) =>
      el('th', { scope: 'col', class: i > 0 && 'number' }, head)))), el('tbody', {}, ...rows)));
}

function key(histories) {
  return el('ol', { class: 'key' }, ...histories.map((history, i) => el('li', {},
    svg('svg', { class: 'key-line', viewBox: '0 0 26 8', 'aria-hidden': 'true' }, svg('path', { class: `line line-${i + 1}`, d: 'M0 4H26' })),
    ` ${i + 1} ${shortName(history.budget)}`)));
}

// What there is to see for `width` pixels: the chart, and the same in words and numbers.
export function spendChart(histories, width) {
  const known = histories.filter((history) => (history.points ?? []).length > 0);
  if (known.length === 0) return [el('p', { class: 'quiet' }, 'Nothing was spent yet.')];
  const one = known.length === 1;
  const last = known[0].points.at(-1);
  const of = share(known[0]);
  const words = one
    ? `Since ${day(known[0].points[0].time)}: ${percent(of(last.posted_units))} of the cap posted, ${percent(of(last.reserved_units))} reserved now.`
    : `Posted and reserved units of ${known.length} budgets, each in per cent of its own cap.`;
  const image = svg('svg', { class: 'steps', viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: 'img', 'aria-label': words },
    ...(one ? oneBudget(known[0], width) : manyBudgets(known, width)));
  return [el('p', { class: 'quiet' }, words), image, one ? asTable(known[0]) : key(known)];
}
