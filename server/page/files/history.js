// Spend over time, of all, of a tenant or of a population.
import { call } from './api.js';
import { spendChart } from './chart.js';
import { byId, el, replaceKeepingFocus } from './dom.js';
import { plural } from './format.js';

const SETTLE = 150;

export class HistoryPanel {
  constructor() {
    new ResizeObserver(() => {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.draw(), SETTLE);
    }).observe(byId('history-chart'));
  }

  async refresh(scope) {
    try {
      this.data = await call('OverviewService/GetSpendHistory', { parent: scope });
      byId('history-error').textContent = '';
    } catch (error) {
      if (error.status !== 400 && error.status !== 404) throw error;
      this.data = undefined;
      byId('history-error').textContent = error.message;
    }
    this.draw();
  }

  // The time goes on, so the chart does, too.
  draw() {
    const place = byId('history-chart');
    const width = Math.floor(place.clientWidth);
    if (width === 0) return;
    if (this.data === undefined) return place.replaceChildren();
    const open = place.querySelector('details')?.open;
    const omitted = Number(this.data.omitted_count ?? 0);
    const more = omitted > 0 && el('p', { class: 'quiet' }, `The fullest are shown; ${plural(omitted, 'more', 'more')} in the table above.`);
    replaceKeepingFocus(place, ...spendChart(this.data.budgets ?? [], width), ...(more ? [more] : []));
    if (open) place.querySelector('details')?.setAttribute('open', '');
  }
}
