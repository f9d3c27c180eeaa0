// Numbers, times and names as people read them. Times are the server's: its clock is what ages are counted from.

let serverOffset = 0;
export function setServerTime(text) {
  serverOffset = Date.parse(text) - Date.now();
}
export const serverNow = () => Date.now() + serverOffset;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function span(milliseconds) {
  const length = Math.abs(milliseconds);
  if (length < MINUTE) return `${Math.max(0, Math.floor(length / 1000))} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < 2 * DAY) return `${Math.floor(length / HOUR)} h`;
  if (length < 730 * DAY) return `${Math.floor(length / DAY)} days`;
  return `${Math.floor(length / (365.25 * DAY))} years`;
}

export const ago = (text) => `${span(serverNow() - Date.parse(text))} ago`;
export const age = (text) => span(serverNow() - Date.parse(text));
export function until(text) {
  const left = Date.parse(text) - serverNow();
  return left < 2000 ? 'now' : `in ${span(left)}`;
}
// 2026-11-17 20:08:53, in UTC.
export const moment = (text) => new Date(text).toISOString().slice(0, 19).replace('T', ' ');
export const day = (text) => new Date(text).toISOString().slice(0, 10);
export const clock = (date) => date.toTimeString().slice(0, 8);

// Four digits that count.
export function epsilon(value) {
  if (value === 0) return '0';
  const plain = Math.abs(value) >= 0.001 && Math.abs(value) < 100_000;
  return plain ? String(Number(value.toPrecision(4))) : value.toExponential(2).replace(/\.?0+e/, 'e');
}
// The same for columns that are compared: as many digits behind the point.
export const aligned = (value) => (value >= 0.1 && value < 1000 ? value.toFixed(3) : epsilon(value));
export const percent = (value) => `${value < 10 ? value.toFixed(1) : value.toFixed(value < 99.95 ? 1 : 0)}%`;

const SCALES = [[1e18, 'E'], [1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
// Units are whole numbers of up to 62 bits, which come as text.
export function units(text) {
  const value = Number(text);
  for (const [scale, letter] of SCALES) {
    if (Math.abs(value) >= scale) return `${(value / scale).toPrecision(3)} ${letter}`;
  }
  return String(value);
}
export const grouped = (text) => BigInt(text).toLocaleString('en').replaceAll(',', '\u2009');
export const plural = (count, one, many) => `${grouped(count)} ${BigInt(count) === 1n ? one : many}`;

// tenants/{t}/... and what follows, without the words in between.
export function parts(name) {
  const split = name.split('/');
  return { tenant: split[1] ?? '', id: split[3] ?? '' };
}
export function shortName(name) {
  if (!name.startsWith('tenants/')) return name;
  const { tenant, id } = parts(name);
  return id === '' ? tenant || name : `${tenant}/${id}`;
}
export const label = (constant) => constant.toLowerCase().replaceAll('_', '-');
