// What the page's server answers, and what it refuses, without a browser.
import assert from 'node:assert/strict';
import net from 'node:net';

const API = '/api/v1';
const WHO = `${API}/ServerService/WhoAmI`;

async function expectStatus(server, status, method, path, headers = {}, body = undefined) {
  const answer = await server.request(method, path, headers, body);
  assert.equal(answer.status, status, `${method} ${path} gives ${answer.status}: ${answer.text}`);
  return answer;
}

async function expectReason(server, status, reason, path, headers) {
  const answer = await expectStatus(server, status, 'GET', path, headers);
  assert.equal(JSON.parse(answer.text).error.reason, reason, path);
}

// Nothing comes back for what is no request.
function sendRaw(server, bytes) {
  const [host, port] = server.pageAddress.split(':');
  return new Promise((resolve) => {
    let received = '';
    const socket = net.connect(Number(port), host, () => socket.write(bytes));
    socket.on('data', (chunk) => { received += chunk; });
    socket.on('close', () => resolve(received));
    socket.on('error', () => resolve(received));
  });
}

async function testHeaders(server) {
  for (const path of ['/', '/page.js', '/page.css', '/favicon.svg', WHO, '/nothing']) {
    const { headers } = await server.request('GET', path);
    const policy = headers['content-security-policy'];
    assert.ok(policy.startsWith("default-src 'none'; script-src 'self'; style-src 'self';"), path);
    assert.ok(policy.includes("frame-ancestors 'none'") && policy.includes("base-uri 'none'") && policy.includes("form-action 'none'"), path);
    assert.ok(!policy.includes('unsafe') && !policy.includes('http'), path);
    assert.equal(headers['x-content-type-options'], 'nosniff', path);
    assert.equal(headers['referrer-policy'], 'no-referrer', path);
  }
  const page = await expectStatus(server, 200, 'GET', '/');
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  assert.ok(!/<script(?![^>]*\bsrc=)/.test(page.text) && !/\son[a-z]+=/.test(page.text) && !/style=/.test(page.text), 'nothing inline');
  assert.ok(!/https?:\/\//.test(page.text), 'nothing from elsewhere');
  const again = await server.request('GET', '/', { 'If-None-Match': page.headers.etag });
  assert.deepEqual([again.status, again.text], [304, '']);
}

async function testSession(server) {
  const bearer = server.bearer(server.operatorToken);
  const { headers } = await expectStatus(server, 204, 'POST', '/session', { ...bearer, Origin: server.origin });
  const [cookie] = headers['set-cookie'];
  assert.match(cookie, /^__Host-dpar_session=[0-9a-f]{64}; Path=\/; Max-Age=28800; HttpOnly; Secure; SameSite=Strict$/);
  const session = { Cookie: cookie.split(';')[0] };
  const who = JSON.parse((await expectStatus(server, 200, 'GET', WHO, session)).text);
  assert.deepEqual([who.role, who.tenant], ['OPERATOR', '']);
  for (const other of [{ Origin: 'https://evil.example' }, { Origin: 'null' }, { Origin: server.origin.replace('https', 'http') }, { 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }]) {
    await expectStatus(server, 403, 'POST', '/session', { ...bearer, ...other });
    await expectStatus(server, 403, 'DELETE', '/session', { ...session, ...other });
  }
  // A session opens no other, and two cookies are none.
  await expectStatus(server, 401, 'POST', '/session', session);
  await expectStatus(server, 401, 'GET', WHO, { Cookie: `${session.Cookie}; ${session.Cookie}` });
  await expectStatus(server, 401, 'GET', WHO, { Cookie: '__Host-dpar_session=' });
  await expectStatus(server, 401, 'GET', WHO, { Cookie: `__Host-dpar_session=${'0'.repeat(64)}` });
  await expectStatus(server, 405, 'GET', '/session', session);
  await expectStatus(server, 405, 'PUT', '/session', session);
  const withBody = await server.request('POST', '/session', bearer, 'token=secret').then((answer) => answer.status, () => 'closed');
  assert.ok(withBody === 413 || withBody === 'closed', `${withBody}`);
  await expectStatus(server, 204, 'DELETE', '/session', { ...session, Origin: server.origin });
  await expectStatus(server, 401, 'GET', WHO, session);
  await expectStatus(server, 204, 'DELETE', '/session', session);
}

async function testApi(server, owners) {
  const operator = server.bearer(server.operatorToken);
  const acme = server.bearer(owners.acme);
  await expectReason(server, 401, 'TOKEN_INVALID', WHO);
  await expectReason(server, 401, 'TOKEN_INVALID', WHO, { Authorization: 'Bearer nonsense' });
  for (const path of ['/api', '/api/v1', `${API}/`, `${API}/WhoAmI`, `${API}/TrainingService/CreateJob`, `${API}/OperatorService/CreateTenant`,
    `${API}/OperatorService/ListTokens`, `${API}/Page/OpenSession`, '/page', '/..%2fpage.js', '/page.js%00', '/page.js/']) {
    await expectStatus(server, 404, 'GET', path, operator);
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD']) {
    const answer = await server.request(method, WHO, operator);
    assert.equal(answer.status, 405, method);
    assert.equal(answer.headers['access-control-allow-origin'], undefined);
  }
  const overview = `${API}/OverviewService`;
  for (const query of ['GetOverview?nonsense=1', 'GetOverview?parent=a&parent=b', 'GetOverview?parent=acme', 'ListUsage?page_size=x',
    'ListUsage?page_size=1001', 'ListUsage?page_size=-1', 'ListUsage?page_token=0', 'ListUsage?page_token=a', 'ListUsage?filter=%25', "ListUsage?filter='",
    `ListUsage?filter=${'a'.repeat(129)}`, 'ListRecentJobs?page_size=101', 'ListLedgerTail?page_token=5', 'ListLedgerTail?parent=tenants/acme/datasets/social',
    'GetSpendHistory?parent=tenants/acme/datasets/social/nonsense']) {
    await expectReason(server, 400, 'INVALID_FIELD', `${overview}/${query}`, operator);
  }
  for (const query of ['GetOverview', 'ListUsage', 'GetSpendHistory', 'ListRecentJobs', 'ListLedgerTail']) {
    await expectReason(server, 403, 'ROLE_INSUFFICIENT', `${overview}/${query}`, acme);
    for (const other of ['tenants/birch', 'tenants/nobody']) {
      await expectReason(server, 404, 'RESOURCE_NOT_FOUND', `${overview}/${query}?parent=${other}`, acme);
    }
    const own = await expectStatus(server, 200, 'GET', `${overview}/${query}?parent=tenants/acme`, acme);
    assert.ok(!own.text.includes('birch'), query);
    assert.equal(own.headers['cache-control'], 'no-store');
    await expectReason(server, 404, 'RESOURCE_NOT_FOUND', `${overview}/${query}?parent=tenants/nobody`, operator);
  }
  for (const query of ['GetSpendHistory', 'ListLedgerTail']) {
    await expectReason(server, 404, 'RESOURCE_NOT_FOUND', `${overview}/${query}?parent=tenants/birch/populations/patients`, acme);
  }
  const reader = (await server.dpar(owners.acme, ['token', 'create', '--tenant', 'acme', '--role', 'member', '--scope', 'upload'])).secret;
  await expectReason(server, 403, 'SCOPE_INSUFFICIENT', `${overview}/GetOverview?parent=tenants/acme`, server.bearer(reader));
}

export async function testHttp(server, owners) {
  // At the address of metrics and health there is nothing of the page.
  assert.equal((await server.plainRequest('/livez')).status, 200);
  for (const path of ['/', '/page.js', '/session', WHO]) assert.equal((await server.plainRequest(path)).status, 404, path);
  await expectStatus(server, 404, 'GET', '/metrics', server.bearer(server.operatorToken));
  assert.equal(await sendRaw(server, Buffer.from([22, 3, 1, 0, 5, 1, 2, 3, 4, 5])).then((text) => text.includes('HTTP')), false);
  await testHeaders(server);
  await testSession(server);
  await testApi(server, owners);
  const large = { 'X-Large': 'a'.repeat(7000), 'X-Larger': 'b'.repeat(7000), 'X-Largest': 'c'.repeat(7000) };
  const status = await server.request('GET', '/', large).then((answer) => answer.status, () => 'closed');
  assert.ok(status === 400 || status === 'closed', `a request is small: ${status}`);
}

export async function testLoginBrake(server) {
  const wrong = server.bearer(`dpar_nobody_${'1'.repeat(64)}`);
  const seen = new Set();
  for (let i = 0; i < 25; ++i) {
    const { status, headers } = await server.request('POST', '/session', wrong);
    seen.add(status);
    if (status === 503) assert.equal(headers['retry-after'], '1');
  }
  assert.deepEqual([...seen].sort(), [401, 503]);
  await expectStatus(server, 204, 'POST', '/session', server.bearer(server.operatorToken));
}
