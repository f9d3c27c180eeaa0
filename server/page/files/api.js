// Calls of the server: GET of methods that only read. An answer that did not change is the same object as before.

export class ApiError extends Error {
  constructor(status, reason, message) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

const PATIENCE = 15_000;
const MAX_KEPT = 50;
const kept = new Map();

function keep(url, etag, data) {
  kept.delete(url);
  kept.set(url, { etag, data });
  if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value);
}

async function failure(response) {
  const fallback = `the server answered ${response.status}`;
  try {
    const { error } = await response.json();
    return new ApiError(response.status, error.reason, error.message);
  } catch {
    return new ApiError(response.status, '', fallback);
  }
}

export async function call(method, parameters = {}) {
  const set = Object.entries(parameters).filter(([, value]) => value !== '' && value !== undefined);
  const query = new URLSearchParams(set).toString();
  const url = `/api/v1/${method}${query === '' ? '' : `?${query}`}`;
  const before = kept.get(url);
  const headers = before === undefined ? {} : { 'If-None-Match': before.etag };
  const response = await fetch(url, { headers, cache: 'no-store', signal: AbortSignal.timeout(PATIENCE) });
  if (response.status === 304) return before.data;
  if (!response.ok) throw await failure(response);
  const data = await response.json();
  keep(url, response.headers.get('ETag'), data);
  return data;
}

export function forget() {
  kept.clear();
}

export async function openSession(token) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch('/session', { method: 'POST', headers, signal: AbortSignal.timeout(PATIENCE) });
  if (!response.ok) throw await failure(response);
}

export async function closeSession() {
  forget();
  await fetch('/session', { method: 'DELETE', signal: AbortSignal.timeout(PATIENCE) });
}
