// Whether the service is healthy, and what needs attention.
import { byId, el, figure, replaceKeepingFocus } from './dom.js';
import { age, ago, grouped, moment, plural, shortName, until } from './format.js';

const when = (text) => el('time', { datetime: text, title: `${moment(text)} UTC` }, ago(text));

function tile(name, state, value, ...detail) {
  return el('div', { class: `tile ${state}` }, el('dt', {}, name), el('dd', { class: 'value' }, ...value),
    el('dd', { class: 'detail' }, ...detail));
}

function workers(health) {
  if (health.concurrent_jobs === undefined) {
    return tile('Running', '', [figure(health.running_jobs, grouped(health.running_jobs))], 'jobs of yours');
  }
  const none = health.concurrent_jobs === '0';
  return tile('Workers', '', [figure(health.running_jobs, grouped(health.running_jobs)), ' running'],
    none ? 'this server runs no jobs itself' : `${plural(health.concurrent_jobs, 'slot', 'slots')} on this server`);
}

function queue(health) {
  const waiting = [figure(health.queued_jobs, grouped(health.queued_jobs)), ' waiting'];
  const oldest = health.oldest_queued_time;
  return tile('Queue', '', waiting, oldest ? `the oldest for ${age(oldest)}` : 'nobody waits');
}

function ledger(health) {
  const committed = health.ledger_commit_time;
  const entries = figure(health.ledger_entry_count, plural(health.ledger_entry_count, 'entry', 'entries'));
  return tile('Ledger', '', committed ? ['committed ', when(committed)] : ['empty'], entries,
    health.ledgers_read ? '' : ', still reading');
}

function chain(health) {
  const { budget_count: all, verified_budget_count: verified, broken_chain_count: broken } = health;
  if (broken !== '0') {
    return tile('Hash chains', 'bad', [figure(broken, plural(broken, 'chain', 'chains')), ' broken'], 'see below');
  }
  const text = `${grouped(verified)} of ${plural(all, 'chain', 'chains')} intact`;
  if (!health.chain_verify_time) return tile('Hash chains', '', [all === '0' ? 'none yet' : 'verifying'], text);
  return tile('Hash chains', 'good', ['verified ', when(health.chain_verify_time)], text);
}

export function showHealth({ health }) {
  const since = health.start_time ? [', up since ', el('time', { class: 'whole', datetime: health.start_time }, `${moment(health.start_time)} UTC`)] : [];
  const serving = health.serving
    ? tile('Service', 'good', ['Serving'], `version ${health.version}`, ...since)
    : tile('Service', 'bad', ['Draining'], 'it takes no new work');
  byId('health-list').replaceChildren(serving, workers(health), queue(health), ledger(health), chain(health));
}

const KINDS = {
  CHAIN_BROKEN: ['Broken ledger', 'bad'],
  BUDGET_NEARLY_SPENT: ['Above 80% of the cap', 'warn'],
  LEASE_EXPIRED: ['Reservation past its lease', 'bad'],
  JOB_REFUSED: ['Refused job', 'warn'],
  JOB_FAILED: ['Failed job', 'bad'],
  LEDGER_ADJUSTED: ['Adjusted by hand', 'note-kind'],
  KEY_EXPIRES: ['Expires soon', 'warn'],
};
const SHOWN = 3;

function item(kind, { resource, time, detail }) {
  const stamp = kind === 'KEY_EXPIRES' ? until(time ?? '') : time && ago(time);
  return el('li', {}, el('span', { class: 'resource' }, shortName(resource)), ' ', el('span', {}, detail),
    time && el('time', { class: 'quiet', datetime: time, title: `${moment(time)} UTC` }, ` · ${stamp}`));
}

function group({ kind, count, items }) {
  const [title, state] = KINDS[kind] ?? [kind, 'note-kind'];
  const lines = items.map((one) => item(kind, one));
  const rest = lines.slice(SHOWN);
  const more = rest.length > 0 && el('details', {},
    el('summary', { 'data-key': `more-${kind}` }, `${grouped(BigInt(count) - BigInt(SHOWN))} more`), el('ul', {}, ...rest));
  return el('article', { class: `attention ${state}`, 'data-kind': kind },
    el('h3', {}, title, ' ', figure(count, `×${grouped(count)}`)), el('ul', {}, ...lines.slice(0, SHOWN)), more);
}

export function showAttention({ attention = [] }) {
  const open = new Set([...document.querySelectorAll('#attention-list details[open]')]
    .map((details) => details.closest('article').getAttribute('data-kind')));
  const total = attention.reduce((sum, { count }) => sum + Number(count), 0);
  byId('attention-count').textContent = total === 0 ? '' : grouped(total);
  const groups = attention.map(group);
  for (const article of groups) {
    if (open.has(article.getAttribute('data-kind'))) article.querySelector('details')?.setAttribute('open', '');
  }
  const nothing = el('p', { class: 'all-well' }, 'Nothing needs attention.');
  replaceKeepingFocus(byId('attention-list'), ...(groups.length === 0 ? [nothing] : groups));
}
