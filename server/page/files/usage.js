// The table tenant by population: sorted, filtered and paged by the server.
import { call } from './api.js';
import { budgetBar, sparkline } from './chart.js';
import { byId, cell, el, emptyRow, figure, replaceKeepingFocus, rowHead } from './dom.js';
import { ago, aligned, day, epsilon, grouped, label, moment, parts, percent, plural, units, until } from './format.js';

const COLUMNS = 8;

function scopeButton(scope, chosen, text, name) {
  return el('button', { type: 'button', class: 'choose', 'data-key': `scope-${scope}`, 'data-scope': scope,
    'aria-pressed': String(chosen === scope), title: `Show ${name} in the chart and the ledger below` }, text);
}

function equivalent(usage) {
  if (usage.equivalent_pending) return [el('span', { class: 'quiet' }, 'computing…')];
  const spent = figure(usage.budget.equivalent_epsilon, aligned(usage.budget.equivalent_epsilon));
  const converted = usage.accountant === 'renyi' && el('abbr', { title: 'converted from units at the Rényi order' }, ' R');
  return [el('span', {}, spent, converted)];
}

function bar({ budget }) {
  const number = (name, value) => el('span', { class: `amount ${name}-amount` }, `${name} `,
    figure(value, units(value)), el('span', { class: 'visually-hidden' }, ` (${grouped(value)} units)`));
  return [budgetBar(budget), el('span', { class: 'amounts' },
    number('posted', budget.posted_units), number('reserved', budget.reserved_units), number('left', budget.left_units)),
  el('span', { class: 'quiet shares' }, `${percent(budget.posted_percent)} + ${percent(budget.reserved_percent)} of the cap`)];
}

function exhaustion({ exhaustion_time: time, daily_posted_units: daily }) {
  if (!time) return el('span', { class: 'quiet' }, daily?.some((value) => value !== '0') ? 'in over 100 years' : 'not at this rate');
  return el('time', { datetime: time, title: `${moment(time)} UTC` }, until(time), ' ', el('span', { class: 'quiet whole' }, `(${day(time)})`));
}

function lastJob({ last_job: job }) {
  if (!job) return el('span', { class: 'quiet' }, 'none yet');
  const known = job.state !== 'STATE_UNSPECIFIED' && el('span', { class: `state ${label(job.state)}` }, label(job.state));
  return el('span', { title: job.name, class: 'last-job' }, known, known && ' ',
    el('time', { class: 'quiet', datetime: job.time, title: `${moment(job.time)} UTC` }, ago(job.time)));
}

// Several datasets, or one of another name, each with what its jobs have posted.
function datasets({ budget, datasets: all }) {
  if (!all || (all.length === 1 && parts(all[0].dataset).id === parts(budget.name).id && !all[0].deleted)) return false;
  const share = ({ posted_units: posted }) => percent(budget.cap_units > 0 ? 100 * posted / budget.cap_units : 0);
  return el('ul', { class: 'quiet versions', 'aria-label': `Datasets of ${parts(budget.name).id}` }, ...all.map((one) =>
    el('li', { 'data-dataset': one.dataset }, `${parts(one.dataset).id} `, figure(one.posted_units, share(one)),
      one.deleted && el('span', { class: 'tag' }, 'deleted'))));
}

function row(usage, chosen) {
  const { budget } = usage;
  const { tenant, id } = parts(budget.name);
  const used = budget.posted_percent + budget.reserved_percent;
  const properties = { role: 'row', 'data-budget': budget.name, class: used > 80 ? 'high' : undefined };
  return el('tr', properties,
    rowHead('', { class: 'name' }, scopeButton(`tenants/${tenant}`, chosen, tenant, `all of ${tenant}`), el('span', { class: 'quiet' }, ' / '),
      scopeButton(budget.name, chosen, id, id),
      budget.frozen_reason && el('span', { class: 'tag', title: budget.frozen_reason }, 'frozen'),
      budget.closed_reason && el('span', { class: 'tag', title: budget.closed_reason }, 'closed'),
      usage.fault && el('span', { class: 'tag', title: usage.fault }, 'unreadable'),
      budget.max_degree && el('span', { class: 'tag', title: `The cap is about graphs in which no node has more than ${grouped(budget.max_degree)} neighbours` },
        `degrees to ${grouped(budget.max_degree)}`), datasets(usage)),
    cell('Cap ε', { class: 'number' }, figure(budget.cap_epsilon, epsilon(budget.cap_epsilon)),
      el('span', { class: 'quiet below' }, `δ ${epsilon(budget.cap_delta)}, order ${budget.order}`)),
    cell('Equivalent ε spent', { class: 'number' }, ...equivalent(usage)),
    cell('Units', { class: 'bar-cell' }, ...bar(usage)),
    cell('Largest ε now', { class: 'number' }, figure(budget.largest_admissible_epsilon, aligned(budget.largest_admissible_epsilon))),
    cell('Last 30 days', {}, sparkline(usage.daily_posted_units ?? [])),
    cell('Used up at that rate', {}, exhaustion(usage)),
    cell('Last job', {}, lastJob(usage)));
}

export class UsagePanel {
  constructor(getScope, onChange) {
    this.getScope = getScope;
    this.parent = '';
    this.filter = '';
    this.starts = [''];
    this.shown = undefined;
    this.version = 0;
    byId('usage-form').addEventListener('submit', (event) => event.preventDefault());
    byId('filter').addEventListener('input', () => {
      this.filter = byId('filter').value.trim().toLowerCase();
      this.first();
      clearTimeout(this.typing);
      this.typing = setTimeout(onChange, 150);
    });
    byId('rows').addEventListener('change', () => {
      this.first();
      onChange();
    });
    byId('usage-next').addEventListener('click', () => {
      if (this.next !== '') this.starts.push(this.next);
      onChange();
    });
    byId('usage-back').addEventListener('click', () => {
      if (this.starts.length > 1) this.starts.pop();
      onChange();
    });
  }

  first() {
    this.starts = [''];
    this.version += 1;
  }

  // Whether something is not computed yet.
  get pending() {
    return this.shown?.usage?.some((usage) => usage.equivalent_pending) ?? false;
  }

  async refresh() {
    const version = this.version;
    const start = this.starts.at(-1);
    const pageSize = Number(byId('rows').value);
    const parameters = { parent: this.parent, filter: this.filter, page_size: pageSize, page_token: start };
    let data;
    try {
      data = await call('OverviewService/ListUsage', parameters);
    } catch (error) {
      if (error.status !== 400 && error.status !== 404) throw error;
      byId('usage-error').textContent = error.message;
      return;
    }
    // An answer to what was asked before the filter changed.
    if (version !== this.version) return;
    byId('usage-error').textContent = '';
    this.next = data.next_page_token;
    this.show(data, start);
  }

  show(data, start) {
    const chosen = this.getScope();
    if (data === this.shown && chosen === this.shownScope && this.shownAt === start) return this.age();
    performance.mark('usage-arrived');
    const rows = (data.usage ?? []).map((usage) => row(usage, chosen));
    if (rows.length === 0) rows.push(emptyRow(COLUMNS, this.filter === '' ? 'There is no private dataset yet.' : 'No population or dataset matches.'));
    replaceKeepingFocus(byId('usage-rows'), ...rows);
    performance.measure('usage-rendered', 'usage-arrived');
    [this.shown, this.shownScope, this.shownAt] = [data, chosen, start];
    const first = Number(start || 0);
    const total = Number(data.total_size);
    byId('usage-total').textContent = total === 0 ? '' :
      `${grouped(first + 1)} to ${grouped(first + (data.usage ?? []).length)} of ${plural(total, 'population', 'populations')}, least left first`;
    byId('usage-next').disabled = this.next === '';
    byId('usage-back').disabled = this.starts.length === 1;
  }

  // Nothing changed but the time.
  age() {
    for (const time of byId('usage-rows').querySelectorAll('time.quiet')) time.textContent = ago(time.dateTime);
  }
}
