// A real dpard in a temporary directory, and dpar to work with it.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync, existsSync, mkdirSync } from 'node:fs';
import https from 'node:https';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const BIN = join(process.env.DPAR_BINARY_DIR, 'bin');
export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Asks until there is an answer. Long enough for a busy machine; a test that waits for all of it has failed.
export async function eventually(what, ask, seconds = 90) {
  const end = Date.now() + 1000 * seconds;
  let last;
  while (Date.now() < end) {
    try {
      const answer = await ask();
      if (answer) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    await sleep(100);
  }
  throw new Error(`not within ${seconds} s: ${what} (${last})`);
}

const readText = (path) => readFileSync(path, 'utf8').trim();

export class Server {
  constructor(flags = []) {
    this.flags = flags;
    this.directory = mkdtempSync(join(tmpdir(), 'dpar-page-'));
    this.data = join(this.directory, 'data');
    mkdirSync(this.data);
  }

  async start(pageListen = '127.0.0.1:0') {
    const log = openSync(join(this.directory, 'dpard.log'), 'a');
    const flags = ['--data-dir', this.data, '--listen', '127.0.0.1:0', '--metrics-listen', '127.0.0.1:0', '--page-listen', pageListen, ...this.flags];
    this.process = spawn(join(BIN, 'dpard'), flags, { stdio: ['ignore', log, log] });
    this.ended = new Promise((resolve) => this.process.once('exit', resolve));
    await eventually('dpard serves', () => {
      if (this.process.exitCode !== null) throw new Error(`dpard ended: ${this.log()}`);
      return existsSync(join(this.data, 'address'));
    });
    this.address = readText(join(this.data, 'address'));
    this.pageAddress = readText(join(this.data, 'page-address'));
    this.metricsAddress = readText(join(this.data, 'metrics-address'));
    this.ca = join(this.data, 'tls/ca.pem');
    this.operatorToken = readText(join(this.data, 'operator.token'));
  }

  get origin() {
    return `https://${this.pageAddress}`;
  }

  log() {
    return readFileSync(join(this.directory, 'dpard.log'), 'utf8').slice(-6000);
  }

  async kill(signal = 'SIGKILL') {
    this.process.kill(signal);
    await this.ended;
  }

  async remove() {
    if (this.process?.exitCode === null && this.process.signalCode === null) await this.kill('SIGTERM');
    rmSync(this.directory, { recursive: true, force: true });
  }

  file(name) {
    return join(this.directory, name);
  }

  // Runs dpar with a token; what it wrote as JSON, or its exit code and words when that is not 0 and `may_fail` is set.
  async dpar(token, arguments_, mayFail = false) {
    const env = { ...process.env, DPAR_SERVER: this.address, DPAR_CA: this.ca, DPAR_TOKEN: token,
      XDG_CONFIG_HOME: this.file('config'), XDG_DATA_HOME: this.file('share') };
    try {
      const { stdout } = await run(join(BIN, 'dpar'), [...arguments_, '--json'], { env, maxBuffer: 1 << 28 });
      // A job that is watched is told of line by line.
      return stdout === '' ? undefined : JSON.parse(stdout.trim().split('\n').at(-1));
    } catch (error) {
      if (mayFail && typeof error.code === 'number') return { exitCode: error.code, words: error.stderr };
      throw error;
    }
  }

  // One request, with the certificate checked against the server's own authority.
  request(method, path, headers = {}, body = undefined) {
    return new Promise((resolve, reject) => {
      const asked = https.request(`${this.origin}${path}`, { method, headers, ca: readFileSync(this.ca), agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => { text += chunk; });
        response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
      });
      asked.on('error', reject);
      asked.end(body);
    });
  }

  plainRequest(path) {
    return new Promise((resolve, reject) => {
      http.get(`http://${this.metricsAddress}${path}`, { agent: false }, (response) => {
        let text = '';
        response.on('data', (chunk) => { text += chunk; });
        response.on('end', () => resolve({ status: response.statusCode, text }));
      }).on('error', reject);
    });
  }

  bearer(token) {
    return { Authorization: `Bearer ${token}` };
  }

  // A method of the API over HTTP.
  async call(token, method, parameters = {}) {
    const query = new URLSearchParams(parameters).toString();
    const answer = await this.request('GET', `/api/v1/${method}?${query}`, this.bearer(token));
    if (answer.status !== 200) throw new Error(`${method}: ${answer.status} ${answer.text}`);
    return JSON.parse(answer.text);
  }
}

export const programs = { fillStore: join(BIN, 'page_fill_store') };
export { run };
