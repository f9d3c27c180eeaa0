// The operator's page: signs in, asks the server again and again, and shows what it says. It changes nothing.
import { ApiError, call, closeSession, forget, openSession } from './api.js';
import { byId } from './dom.js';
import { clock, parts, setServerTime, shortName } from './format.js';
import { showAttention, showHealth } from './health.js';
import { HistoryPanel } from './history.js';
import { refreshJobs } from './jobs.js';
import { LedgerPanel } from './ledger.js';
import { UsagePanel } from './usage.js';

// One small question every two seconds tells whether anything changed; the rest is asked for when it did, and every ten
// seconds. Nothing is asked while nobody looks.
const PERIOD = 2000;
const FULL_PERIOD = 10_000;
const MAX_PERIOD = 15_000;
// Where the reason for a sign-in stays while the document is loaded anew.
const REASON = 'dpar-sign-in-reason';
const VIEWS = ['sign-in-view', 'wait-view', 'page-view'];

const state = { parent: '', scope: '', entries: '', live: '', fullTime: 0, failures: 0, lastGood: undefined, running: false, signedIn: false };
let timer;

const usage = new UsagePanel(() => state.scope, () => refreshSoon());
const history = new HistoryPanel();
const ledger = new LedgerPanel(() => refreshSoon());

const scopeOfAddress = () => new URLSearchParams(location.hash.slice(1)).get('scope') ?? '';
const scopeTitle = (scope) => (scope === state.parent ? 'all' : shortName(scope));

function showScope() {
  byId('history-scope').textContent = scopeTitle(state.scope);
  byId('ledger-scope').textContent = scopeTitle(state.scope);
  byId('scope-all').hidden = state.scope === state.parent;
}

function choose(scope) {
  const next = scope === state.scope ? state.parent : scope;
  location.hash = next === state.parent ? '' : new URLSearchParams({ scope: next }).toString();
}

function followAddress() {
  state.scope = scopeOfAddress() || state.parent;
  ledger.first();
  showScope();
  refreshSoon();
}

function setLive(text, name) {
  const live = byId('live');
  if (live.dataset.state !== name) byId('live-state').textContent = text;
  live.dataset.state = name;
}

function showView(shown) {
  for (const view of VIEWS) byId(view).hidden = view !== shown;
}

const problemOf = (error) => (error instanceof ApiError ? `The server cannot answer: ${error.message}.` : 'The server does not answer.');

function showGone(error) {
  const since = state.lastGood === undefined ? '' : ` What is shown is as of ${clock(state.lastGood)}.`;
  const text = `${problemOf(error)}${since} This page keeps trying.`;
  byId('gone').textContent = text;
  byId('gone').hidden = false;
  byId('wait-state').textContent = text;
  document.body.classList.add('stale');
  setLive('No answer', 'gone');
}

// What was shown is not for whoever is signed in now. Nothing is asked again.
function showForbidden(error) {
  state.signedIn = false;
  for (const name of ['whose', 'who']) byId(name).textContent = '';
  byId('wait-state').textContent = `${problemOf(error)} Sign out and use another token, or load this page again.`;
  setLive('No access', 'gone');
  closeDialogs();
  showView('wait-view');
}

function showAlive() {
  state.lastGood = new Date();
  state.failures = 0;
  byId('updated').textContent = clock(state.lastGood);
  byId('updated').dateTime = state.lastGood.toISOString();
  byId('gone').hidden = true;
  document.body.classList.remove('stale');
  setLive('Live', 'live');
  showView('page-view');
}

async function refreshAll() {
  const overview = await call('OverviewService/GetOverview', { parent: state.parent });
  setServerTime(overview.time);
  showHealth(overview);
  showAttention(overview);
  const { health } = overview;
  const busy = health.running_jobs !== '0' || health.queued_jobs !== '0';
  const live = `${health.running_jobs} ${health.queued_jobs}`;
  const full = state.entries !== health.ledger_entry_count || Date.now() - state.fullTime >= FULL_PERIOD;
  const work = [];
  if (full || busy || live !== state.live) work.push(refreshJobs(state.parent));
  if (full || usage.pending) work.push(usage.refresh());
  if (full) work.push(history.refresh(state.scope), ledger.refresh(state.scope));
  await Promise.all(work);
  if (full) [state.entries, state.fullTime] = [health.ledger_entry_count, Date.now()];
  state.live = live;
  showAlive();
}

async function tick() {
  clearTimeout(timer);
  if (!state.signedIn) return;
  if (state.running) {
    state.again = true;
    return;
  }
  state.running = true;
  let period = PERIOD;
  try {
    await refreshAll();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return startAnew(error.message);
    if (error instanceof ApiError && (error.status === 403 || error.status === 404)) return showForbidden(error);
    state.failures += 1;
    period = Math.min(MAX_PERIOD, PERIOD * 2 ** Math.min(state.failures - 1, 3));
    showGone(error);
  }
  state.running = false;
  if (state.again) {
    state.again = false;
    return tick();
  }
  if (!document.hidden) timer = setTimeout(tick, period);
}

function refreshSoon() {
  state.fullTime = 0;
  tick();
}

function closeDialogs() {
  for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
}

// Nothing of what was shown, and no name in the address, is left to the next one who signs in.
function startAnew(reason) {
  clearTimeout(timer);
  state.signedIn = false;
  forget();
  closeDialogs();
  showView('');
  byId('top-state').hidden = true;
  sessionStorage.setItem(REASON, reason);
  globalThis.history.replaceState(null, '', location.pathname);
  location.reload();
}

function takeReason() {
  const reason = sessionStorage.getItem(REASON) ?? '';
  sessionStorage.removeItem(REASON);
  return reason;
}

function showSignIn(message) {
  showView('sign-in-view');
  byId('sign-in-error').textContent = message;
  document.title = 'Sign in · DPAR';
  byId('token').focus();
}

function showPage(identity) {
  const operator = identity.role === 'OPERATOR';
  state.parent = identity.tenant;
  usage.parent = identity.tenant;
  usage.first();
  const whose = operator ? 'all tenants' : parts(identity.tenant).tenant;
  byId('whose').textContent = whose;
  byId('who').textContent = identity.token;
  byId('foot').textContent = `Signed in as ${identity.role.toLowerCase()} with ${identity.token}. Read-only: changes are made with dpar.`;
  document.title = `${whose} · DPAR`;
  byId('top-state').hidden = false;
  // The page itself comes with the first answer.
  showView('wait-view');
  state.signedIn = true;
  state.entries = '';
  followAddress();
}

async function start() {
  const reason = takeReason();
  try {
    showPage(await call('ServerService/WhoAmI'));
  } catch (error) {
    showSignIn(error instanceof ApiError && error.status === 401 ? reason : problemOf(error));
  }
}

byId('sign-in-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const input = byId('token');
  byId('sign-in-error').textContent = '';
  try {
    await openSession(input.value.trim());
    input.value = '';
    await start();
  } catch (error) {
    byId('sign-in-error').textContent = error instanceof ApiError ? error.message : 'The server does not answer. Try again.';
    input.select();
  }
});
byId('sign-out').addEventListener('click', async () => {
  try {
    await closeSession();
    startAnew('');
  } catch (error) {
    showGone(error);
  }
});
byId('usage-rows').addEventListener('click', (event) => {
  const button = event.target.closest('button[data-scope]');
  if (button !== null) choose(button.getAttribute('data-scope'));
});
byId('scope-all').addEventListener('click', () => choose(state.parent));
addEventListener('hashchange', () => {
  if (state.signedIn) followAddress();
});
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (!document.hidden) tick();
});
start();
