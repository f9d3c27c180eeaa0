// The operator's page in headless Chromium against a real dpard with real jobs.
//   node page_test.mjs [--screenshots DIR]
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { testHttp, testLoginBrake } from './http_steps.mjs';
import { takeScreenshots } from './screenshots.mjs';
import { Server, eventually, programs, run, sleep } from './world.mjs';

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PATIENCE = 90_000;
const EVIL = '<img src=x onerror=alert(1)>';

let steps = 0;
async function step(name, body) {
  const start = Date.now();
  await body();
  steps += 1;
  console.log(`ok ${steps} ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
}

// Two tenants with datasets and jobs that ended, and what needs attention.
async function makeWorld(server, purpose = EVIL, reason = 'agreed <b>twice</b>') {
  const operator = server.operatorToken;
  const owners = {};
  for (const tenant of ['acme', 'birch']) {
    await server.dpar(operator, ['tenant', 'create', tenant]);
    owners[tenant] = (await server.dpar(operator, ['token', 'create', '--tenant', tenant, '--role', 'owner'])).secret;
  }
  await server.dpar(operator, ['token', 'create', '--tenant', 'acme', '--role', 'reader', '--purpose', purpose, '--expires-in', '5d']);
  const graph = async (name, nodes) => {
    await server.dpar(operator, ['graph', 'generate', '-o', server.file(`${name}.npz`), '--nodes', String(nodes)]);
    return server.file(`${name}.npz`);
  };
  const upload = async (tenant, name, nodes, cap) =>
    server.dpar(owners[tenant], ['upload', await graph(name, nodes), '--name', name, '--cap-epsilon', String(cap)]);
  await upload('acme', 'citations', 600, 2);
  await upload('acme', 'social', 700, 8);
  await upload('birch', 'patients', 800, 4);
  const train = (tenant, dataset, epsilon) =>
    server.dpar(owners[tenant], ['train', dataset, '--epsilon', String(epsilon), '--steps', '20', '--yes']);
  await train('acme', 'citations', 1.9);
  await train('acme', 'social', 0.5);
  await train('acme', 'social', 0.7);
  await train('birch', 'patients', 1);
  const refused = await server.dpar(owners.acme, ['train', 'citations', '--epsilon', '1.9', '--yes'], true);
  assert.notEqual(refused.exitCode, 0, 'the second job on citations is refused');
  await server.dpar(operator, ['cap', 'tenants/birch/datasets/patients', '--epsilon', '5', '--reason', reason]);
  await server.dpar(operator, ['debit', 'tenants/birch/datasets/patients', '--units', '1000', '--reason', 'a pilot']);
  return owners;
}

async function open(browser, server, options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.problems = [];
  page.on('dialog', async (dialog) => {
    page.problems.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on('pageerror', (error) => page.problems.push(`exception: ${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) page.problems.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${server.origin}/`) && !url.startsWith(`blob:${server.origin}`)) page.problems.push(`external: ${url}`);
  });
  await page.goto(`${server.origin}/`);
  return page;
}

async function signIn(page, token) {
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function openSignedIn(browser, server, token, options) {
  const page = await open(browser, server, options);
  await signIn(page, token);
  await page.locator('#usage-rows tr[data-budget]').first().waitFor();
  return page;
}

async function checkAxe(page, what) {
  // The tool itself is no part of the page: it is evaluated by the browser's debugger, not loaded.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).slice(0, 3).join(' | ')}`);
  assert.deepEqual(found, [], `${what} has no accessibility violations`);
}

const figures = (row) => row.locator('data').evaluateAll((all) => all.map((data) => data.getAttribute('value')));

// Every figure of a budget's row is the one that dpar gives.
async function checkUsage(page, server) {
  const { budgets } = await server.dpar(server.operatorToken, ['ledger', 'list']);
  assert.ok(budgets.length >= 3);
  for (const budget of budgets) {
    const row = page.locator(`#usage-rows tr[data-budget="${budget.name}"]`);
    const expected = ['cap_epsilon', 'equivalent_epsilon', 'posted_units', 'reserved_units', 'left_units', 'largest_admissible_epsilon']
      .map((field) => budget[field]);
    await eventually(`${budget.name} is shown as ${expected}`, async () => {
      const shown = (await figures(row)).map(Number);
      return JSON.stringify(shown) === JSON.stringify(expected) && shown;
    });
  }
  const order = await page.locator('#usage-rows tr[data-budget]').evaluateAll((rows) => rows.map((row) => row.dataset.budget));
  const left = (name) => { const b = budgets.find((one) => one.name === name); return b.left_units / b.cap_units; };
  assert.deepEqual(order, [...order].sort((a, b) => left(a) - left(b)), 'least left first');
}

async function checkLedger(page, server, population) {
  const { entries } = await server.dpar(server.operatorToken, ['ledger', 'list', population]);
  await page.goto(`${server.origin}/#scope=${encodeURIComponent(population)}`);
  const expected = [...entries].reverse().map((entry) => [entry.hash, entry.sequence, entry.units]);
  await eventually(`the ledger of ${population} is shown`, async () => {
    const shown = await page.locator('#ledger-rows tr[data-entry]').evaluateAll((rows) => rows.map((row) =>
      [row.dataset.hash, ...[...row.querySelectorAll('data')].slice(0, 2).map((data) => Number(data.value))]));
    return JSON.stringify(shown) === JSON.stringify(expected);
  });
}

async function checkHealth(page, server) {
  const { entries } = await server.dpar(server.operatorToken, ['ledger', 'list', 'tenants/acme/populations/social']);
  assert.ok(entries.length > 0);
  await page.getByText('Serving', { exact: true }).waitFor();
  await page.locator('#health .tile', { hasText: 'Hash chains' }).getByText('3 of 3 chains intact').waitFor();
  const { budgets } = await server.dpar(server.operatorToken, ['ledger', 'list']);
  let count = 0;
  for (const { name } of budgets) {
    count += (await server.dpar(server.operatorToken, ['ledger', 'list', name])).entries.length;
  }
  await page.locator(`#health .tile:has-text("Ledger") data[value="${count}"]`).waitFor();
}

async function checkAttention(page) {
  const group = (kind) => page.locator(`#attention article[data-kind="${kind}"]`);
  await group('BUDGET_NEARLY_SPENT').getByText('acme/citations').waitFor();
  await group('JOB_REFUSED').getByText('the privacy budget cannot pay for this job').waitFor();
  await group('LEDGER_ADJUSTED').getByText('cap set to epsilon 5: agreed <b>twice</b>').waitFor();
  await group('LEDGER_ADJUSTED').getByText('1000 units debited by hand: a pilot').waitFor();
  await group('KEY_EXPIRES').getByText(EVIL).waitFor();
  assert.equal(await page.locator('#attention b, #attention img').count(), 0, 'texts are texts');
}

// A job long enough to be seen: its bar moves.
async function checkProgress(page, server, owner) {
  await server.dpar(owner, ['train', 'social', '--epsilon', '0.2', '--steps', '200000', '--method', 'features', '--yes', '--no-watch']);
  const bar = page.locator('#jobs-rows progress[value]').first();
  await bar.waitFor();
  const seen = new Set();
  await eventually('the bar moves', async () => {
    seen.add(await bar.getAttribute('value', { timeout: 1000 }));
    return seen.size >= 3;
  });
  const values = [...seen].map(Number);
  assert.deepEqual(values, [...values].sort((a, b) => a - b), 'and only forward');
  await page.locator('#usage-rows tr[data-budget$="populations/social"] .reserved-amount data:not([value="0"])').waitFor();
}

async function endLiveJobs(server, owner) {
  const { jobs } = await server.dpar(owner, ['job', 'list']);
  for (const job of jobs.filter(({ state }) => state === 'running' || state === 'queued')) {
    await server.dpar(owner, ['cancel', job.name.split('/').at(-1)], true);
  }
}

async function checkCertificate(page, server, owner) {
  const { jobs } = await server.dpar(owner, ['job', 'list']);
  const job = jobs.find(({ state, dataset }) => state === 'succeeded' && dataset.endsWith('/social'));
  await page.goto(`${server.origin}/#scope=${encodeURIComponent('tenants/acme/populations/social')}`);
  await page.locator(`button[data-certificate="view"][data-job="${job.name}"]`).click();
  const text = page.locator('#certificate-text');
  await eventually('the statement is shown', async () => (await text.textContent()).includes('in-toto'));
  const statement = JSON.parse(await text.textContent());
  assert.equal(statement._type, 'https://in-toto.io/Statement/v1');
  const [download] = await Promise.all([page.waitForEvent('download'), page.locator('#certificate-download').click()]);
  await server.dpar(owner, ['download', job.name.split('/').at(-1), '-o', server.file('model')]);
  assert.deepEqual(readFileSync(await download.path()), readFileSync(server.file('model/certificate.json')), 'byte by byte');
  await page.keyboard.press('Escape');
  await page.locator('#certificate').waitFor({ state: 'hidden' });
}

async function checkKeyboard(page, server) {
  await page.goto(`${server.origin}/#`);
  await page.locator('#filter').focus();
  await page.keyboard.type('SOCI');
  await eventually('only what matches is shown', async () => await page.locator('#usage-rows tr[data-budget]').count() === 1);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'rows');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  const chosen = () => page.evaluate(() => document.activeElement.getAttribute('data-scope'));
  assert.equal(await chosen(), 'tenants/acme/populations/social');
  const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.equal(ring, 'solid', 'the focus is seen');
  await page.keyboard.press('Enter');
  await page.locator('#history-scope', { hasText: 'acme/social' }).waitFor();
  await page.locator('button[data-scope$="populations/social"][aria-pressed="true"]').waitFor();
  assert.equal(await chosen(), 'tenants/acme/populations/social', 'the focus outlives a refresh');
  await page.locator('#history-chart .line-cap').waitFor({ state: 'attached' });
  await page.locator('#filter').fill('%_');
  await page.locator('#usage-error', { hasText: 'filter must be' }).waitFor();
  await page.locator('#filter').fill('');
  await eventually('all are shown again', async () => await page.locator('#usage-rows tr[data-budget]').count() === 3);
}

async function checkTenant(browser, server, owner) {
  const page = await openSignedIn(browser, server, owner);
  const names = await page.locator('#usage-rows tr[data-budget]').evaluateAll((rows) => rows.map((row) => row.dataset.budget));
  assert.deepEqual(names, ['tenants/birch/populations/patients']);
  await page.goto(`${server.origin}/#scope=${encodeURIComponent('tenants/acme/populations/social')}`);
  for (const panel of ['history', 'ledger']) {
    await page.locator(`#${panel}-error`, { hasText: 'tenants/acme/populations/social' }).waitFor();
  }
  assert.equal(await page.locator('#ledger-rows tr[data-entry]').count(), 0);
  await page.goto(`${server.origin}/#scope=tenants%2Facme`);
  await page.locator('#ledger-error', { hasText: 'tenants/acme' }).waitFor();
  assert.equal(await page.locator('#ledger-rows tr[data-entry]').count(), 0);
  await page.goto(`${server.origin}/#`);
  await page.locator('#ledger-rows tr[data-entry]').first().waitFor();
  assert.ok(!(await page.locator('body').innerText()).includes('acme'), 'nothing of another tenant');
  assert.equal(await page.locator('#health').getByText('Workers').count(), 0);
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

async function checkEnds(browser, server) {
  const page = await openSignedIn(browser, server, server.operatorToken);
  const [cookie] = await page.context().cookies();
  const headers = { Cookie: `${cookie.name}=${cookie.value}` };
  assert.equal((await server.request('GET', '/api/v1/ServerService/WhoAmI', headers)).status, 200);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  assert.equal((await server.request('GET', '/api/v1/ServerService/WhoAmI', headers)).status, 401, 'the session is over');
  const { secret, token } = await server.dpar(server.operatorToken, ['token', 'create', '--operator']);
  await signIn(page, secret);
  await page.locator('#usage-rows tr[data-budget]').first().waitFor();
  await server.dpar(server.operatorToken, ['token', 'revoke', token.name]);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await page.locator('#sign-in-error', { hasText: 'revoked' }).waitFor();
  await page.context().close();
}

async function checkPrint(page) {
  const pdf = (await page.pdf({ preferCSSPageSize: true, printBackground: true })).toString('latin1');
  assert.equal((pdf.match(/\/Type\s*\/Page\b/g) ?? []).length, 1, 'it prints on one page');
}

async function checkKilled(page, server) {
  await page.locator('#live[data-state="live"]').waitFor();
  await server.kill();
  await page.locator('#gone', { hasText: 'The server does not answer. What is shown is as of' }).waitFor();
  await page.locator('#live[data-state="gone"]').waitFor();
  assert.ok(await page.evaluate(() => document.body.classList.contains('stale')));
  assert.ok(await page.locator('#usage-rows tr[data-budget]').count() > 0, 'what was known stays');
  await server.start(server.pageAddress);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await signIn(page, server.operatorToken);
  await page.locator('#live[data-state="live"]').waitFor();
  assert.ok(await page.locator('#gone').isHidden());
}

// Many datasets and a long ledger: counts are exact, pages follow one another; the times are printed.
async function checkMany(browser) {
  const server = new Server(['--no-worker']);
  try {
    const [datasets, entries] = [1000, 100_000];
    let start = Date.now();
    await run(programs.fillStore, [server.data, String(datasets), String(entries)]);
    console.log(`   filled ${datasets} datasets and about ${entries} entries in ${Date.now() - start} ms`);
    await server.start();
    const page = await openSignedIn(browser, server, server.operatorToken);
    start = Date.now();
    await page.locator('#health .tile:has-text("Ledger") .detail:not(:has-text("still reading"))').waitFor();
    console.log(`   the ledgers were read ${Date.now() - start} ms after the page was shown`);
    const health = (await server.call(server.operatorToken, 'OverviewService/GetOverview')).health;
    assert.equal(health.budget_count, String(datasets));
    assert.ok(Math.abs(Number(health.ledger_entry_count) - entries) <= 2, health.ledger_entry_count);
    await page.locator('#rows').selectOption('1000');
    await page.locator('#usage-rows tr[data-budget]').nth(datasets - 1).waitFor();
    await page.locator('#usage-total', { hasText: 'of 1\u2009000 populations' }).waitFor();
    const rendered = await page.evaluate(() => Math.max(...performance.getEntriesByName('usage-rendered').map(({ duration }) => duration)));
    start = Date.now();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    console.log(`   ${datasets} rows were made in ${rendered.toFixed(0)} ms after the data arrived, the next two frames took ${Date.now() - start} ms`);
    await page.locator('#rows').selectOption('25');
    await page.locator('#filter').fill('tenant-3/graph-3');
    const matching = Array.from({ length: datasets }, (_, i) => i).filter((i) => i % 10 === 3 && `graph-${i}`.startsWith('graph-3')).length;
    await page.locator('#usage-total', { hasText: `of ${matching} populations` }).waitFor();
    await checkPaging(page, server);
    for (const method of ['GetOverview', 'ListUsage', 'ListLedgerTail', 'ListRecentJobs', 'GetSpendHistory']) {
      start = Date.now();
      await server.call(server.operatorToken, `OverviewService/${method}`);
      console.log(`   ${method} took ${Date.now() - start} ms`);
    }
    await page.locator('#filter').fill('');
    await page.locator('#usage-rows tr[data-budget]').nth(24).waitFor();
    await checkPrint(page);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  } finally {
    await server.remove();
  }
}

async function checkPaging(page, server) {
  const parent = 'tenants/tenant-0/populations/graph-0';
  await page.goto(`${server.origin}/#scope=${encodeURIComponent(parent)}`);
  const sequences = () => page.locator('#ledger-rows tr[data-entry]').evaluateAll((rows) => rows.map((row) => Number(row.dataset.entry.split(' ')[1])));
  const from = (first) => Array.from({ length: 25 }, (_, i) => first - i);
  const head = Number((await server.call(server.operatorToken, 'OverviewService/ListLedgerTail', { parent, page_size: 1 })).entries[0].entry.sequence);
  assert.ok(head > 15_000, `${head}`);
  for (const first of [head, head - 25, head - 50]) {
    await eventually(`entries from ${first} on`, async () => JSON.stringify(await sequences()) === JSON.stringify(from(first)));
    await page.locator('#ledger-older').click();
  }
  const history = (await server.call(server.operatorToken, 'OverviewService/GetSpendHistory', { parent })).budgets[0];
  const budget = await server.call(server.operatorToken, 'BudgetService/GetBudget', { name: parent });
  assert.ok(history.points.length <= 512 && history.points.length > 100, `${history.points.length} points`);
  assert.equal(history.points.at(-1).posted_units, budget.posted_units, 'the history ends where the ledger does');
}

async function main() {
  const directory = process.argv[2] === '--screenshots' ? process.argv[3] : undefined;
  const server = new Server(['--concurrent-jobs', '1']);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, headless: true, args: ['--no-sandbox',
    '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] });
  try {
    // Pictures show a past.
    if (directory !== undefined) await run(programs.fillStore, [server.data, '9', '500']);
    await server.start();
    const owners = directory === undefined ? await makeWorld(server) : await makeWorld(server, 'nightly reports', 'agreed with the owner');
    if (directory !== undefined) {
      await takeScreenshots({ browser, server, owners, directory, openSignedIn, open });
      return;
    }
    await step('what HTTP answers, and what it refuses', () => testHttp(server, owners));
    const page = await open(browser, server);
    await step('a wrong token is told so', async () => {
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await checkAxe(page, 'the form');
      await signIn(page, `dpar_nobody_${'0'.repeat(64)}`);
      await page.locator('#sign-in-error', { hasText: 'the token is not valid' }).waitFor();
      assert.ok(await page.locator('#page-view').isHidden());
      assert.deepEqual(await page.context().cookies(), []);
    });
    await step('the operator signs in', async () => {
      await signIn(page, server.operatorToken);
      await page.locator('#usage-rows tr[data-budget]').nth(2).waitFor();
      const [cookie] = await page.context().cookies();
      assert.deepEqual([cookie.name, cookie.httpOnly, cookie.secure, cookie.sameSite, cookie.path], ['__Host-dpar_session', true, true, 'Strict', '/']);
      assert.equal(await page.evaluate(() => document.cookie), '');
      assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
    });
    await step('health is that of the ledger', () => checkHealth(page, server));
    await step('what needs attention is told', () => checkAttention(page));
    await step('every figure of the table is that of dpar', () => checkUsage(page, server));
    await step('every entry of a ledger is that of dpar', () => checkLedger(page, server, 'tenants/birch/populations/patients'));
    await step('a certificate is shown, and downloaded as it was signed', () => checkCertificate(page, server, owners.acme));
    await step('the keyboard is enough', () => checkKeyboard(page, server));
    await step('progress moves', () => checkProgress(page, server, owners.acme));
    await step('axe finds nothing, light and dark, wide and narrow', async () => {
      for (const colorScheme of ['light', 'dark']) {
        for (const width of [1280, 768, 390]) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize({ width, height: 900 });
          await sleep(300);
          await checkAxe(page, `${colorScheme} at ${width}`);
          const cut = await page.evaluate(() => [document.documentElement, ...document.querySelectorAll('.scroll')]
            .filter((box) => box.scrollWidth > box.clientWidth).map((box) => box.id || 'page'));
          assert.deepEqual(cut, [], `nothing is cut off at ${width}`);
        }
      }
      await page.emulateMedia({ colorScheme: 'light' });
      await page.setViewportSize({ width: 1280, height: 900 });
    });
    await step('it prints on one page', () => checkPrint(page));
    await endLiveJobs(server, owners.acme);
    await step('a tenant sees its own rows only', () => checkTenant(browser, server, owners.birch));
    await step('signing out, or a revoked token, ends a session', () => checkEnds(browser, server));
    await step('a server that is gone is told, and that it is back', () => checkKilled(page, server));
    assert.deepEqual(page.problems, [], 'no error, no dialog, no request elsewhere');
    await step('a thousand datasets and a hundred thousand entries', () => checkMany(browser));
    await step('those who try tokens are slowed down', () => testLoginBrake(server));
  } catch (error) {
    console.error(`--- end of dpard's log\n${server.log()}---`);
    throw error;
  } finally {
    await browser.close();
    await server.remove();
  }
}

await main();
console.log(`page_test: ${steps} steps passed`);
