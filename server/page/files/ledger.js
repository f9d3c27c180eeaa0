// The ledger's tail, page by page for one population, and the certificates of posted entries.
import { call } from './api.js';
import { byId, cell, el, emptyRow, figure, replaceKeepingFocus, rowHead } from './dom.js';
import { epsilon, grouped, label, moment, shortName } from './format.js';

const COLUMNS = 9;
// Of one page; a phone shows fewer.
const shown = () => (matchMedia('(max-width: 640px)').matches ? 10 : 25);
const SIGNS = { OPEN: '○', RESERVE: '◌', POST: '●', VOID: '×', ADJUST: '±', DEBIT: '−', MERGE: '⊕', INHERIT: '◉', CLOSE: '■' };

function kind(name) {
  return el('span', { class: `kind ${label(name)}` }, el('span', { 'aria-hidden': 'true' }, `${SIGNS[name] ?? '?'} `), label(name));
}

function certificate({ entry, has_certificate: exists }) {
  if (!exists) return el('span', { class: 'quiet' }, '–');
  const button = (action, text) => el('button', { type: 'button', class: 'small', 'data-key': `${action}-${entry.job}`,
    'data-certificate': action, 'data-job': entry.job, 'aria-label': `${text} the certificate of ${shortName(entry.job)}` }, text);
  return el('span', {}, button('view', 'View'), ' ', button('download', 'Download'));
}

function row(tail) {
  const { budget, entry } = tail;
  return el('tr', { role: 'row', 'data-entry': `${budget} ${entry.sequence}`, 'data-hash': entry.hash },
    rowHead('Time (UTC)', { class: 'stamp' }, el('time', { datetime: entry.time }, moment(entry.time))),
    cell('Tenant / population', { class: 'name' }, shortName(budget)),
    cell('Sequence', { class: 'number' }, figure(entry.sequence, grouped(entry.sequence))),
    cell('Kind', {}, kind(entry.kind)),
    cell('Units', { class: 'number' }, figure(entry.units, grouped(entry.units))),
    cell('ε', { class: 'number' }, entry.kind === 'DEBIT' || entry.kind === 'CLOSE' ? '–' : figure(entry.epsilon, epsilon(entry.epsilon))),
    cell('Job or reason', { class: 'name' }, [entry.job && shortName(entry.job), entry.reason].filter(Boolean).join(': ') || '–'),
    cell('Hash', {}, el('code', { class: 'hash', title: entry.hash }, entry.hash.slice(0, 12), el('span', { class: 'visually-hidden' }, entry.hash.slice(12)))),
    cell('Certificate', { class: tail.has_certificate ? 'buttons' : 'none' }, certificate(tail)));
}

function save(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/vnd.dsse.envelope+json' }));
  const link = el('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const decode = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
const textOf = (bytes) => new TextDecoder().decode(bytes);
const fileName = (job) => `${shortName(job).replaceAll('/', '-')}.certificate.json`;

// The exact bytes that were signed into an envelope.
const envelopeOf = async (job) => decode((await call('TrainingService/GetCertificate', { name: job })).envelope);

async function view(job) {
  const dialog = byId('certificate');
  byId('certificate-title').textContent = `Certificate of ${shortName(job)}`;
  byId('certificate-error').textContent = '';
  byId('certificate-text').textContent = '';
  byId('certificate-note').textContent = '';
  dialog.showModal();
  try {
    const bytes = await envelopeOf(job);
    const envelope = JSON.parse(textOf(bytes));
    byId('certificate-note').textContent = `Signed with key ${envelope.signatures.map(({ keyid }) => keyid.slice(0, 16)).join(', ')}…; shown here, not verified. Verify what you download with dpar certificate verify.`;
    byId('certificate-text').textContent = JSON.stringify(JSON.parse(textOf(decode(envelope.payload))), undefined, 2);
    byId('certificate-download').onclick = () => save(bytes, fileName(job));
  } catch (error) {
    byId('certificate-error').textContent = `The certificate cannot be shown: ${error.message}`;
  }
}

async function download(job) {
  try {
    save(await envelopeOf(job), fileName(job));
    byId('ledger-error').textContent = '';
  } catch (error) {
    byId('ledger-error').textContent = `The certificate cannot be downloaded: ${error.message}`;
  }
}

export class LedgerPanel {
  constructor(onChange) {
    this.start = '';
    byId('ledger-older').addEventListener('click', () => {
      this.start = this.next;
      onChange();
    });
    byId('ledger-newest').addEventListener('click', () => {
      this.start = '';
      onChange();
    });
    byId('ledger-rows').addEventListener('click', (event) => {
      const button = event.target.closest('button[data-certificate]');
      if (button === null) return;
      const job = button.getAttribute('data-job');
      if (button.getAttribute('data-certificate') === 'view') view(job);
      else download(job);
    });
  }

  first() {
    this.start = '';
  }

  async refresh(scope) {
    const start = this.start;
    let data;
    try {
      data = await call('OverviewService/ListLedgerTail', { parent: scope, page_size: shown(), page_token: start });
      byId('ledger-error').textContent = '';
    } catch (error) {
      if (error.status !== 400 && error.status !== 404) throw error;
      byId('ledger-error').textContent = error.message;
      data = { entries: [], next_page_token: '' };
    }
    if (data === this.shown || start !== this.start) return;
    this.shown = data;
    this.next = data.next_page_token;
    const rows = (data.entries ?? []).map(row);
    if (rows.length === 0) rows.push(emptyRow(COLUMNS, 'There is no entry.'));
    replaceKeepingFocus(byId('ledger-rows'), ...rows);
    const one = scope.includes('/populations/');
    byId('ledger-older').disabled = this.next === '';
    byId('ledger-newest').disabled = start === '';
    byId('ledger-older').hidden = !one;
    byId('ledger-newest').hidden = !one;
    byId('ledger-note').textContent = one ? '' : 'Choose a population above to page through the whole of its ledger.';
  }
}
