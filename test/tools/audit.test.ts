import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';

const script = join(import.meta.dirname, '../../tools/audit.ts');

const lockFile = {
  packages: {
    '': { name: 'wharfinger', version: '0.1.0' },
    'node_modules/used': { version: '1.2.3' },
    'node_modules/used/node_modules/@scope/nested': { version: '2.0.0' },
    'node_modules/@scope/nested': { version: '3.0.0' },
    'node_modules/alias': { name: 'original', version: '1.0.0' },
    'node_modules/for-tests': { version: '1.0.0', dev: true },
    'node_modules/linked': { link: true },
  },
};

const advisory = (id: string, severity: string, range: string) => ({
  id: 1,
  url: `https://github.com/advisories/${id}`,
  title: `problem ${id}`,
  severity,
  vulnerable_versions: range,
});

type Respond = (req: IncomingMessage, res: ServerResponse) => void;

/** Answers as the registry does, with these advisories by package. */
const respondWith =
  (body: unknown, status = 200): Respond =>
  (_, res) =>
    res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** Runs the check on a small project with a registry that runs in this process. */
async function audit(
  t: TestContext,
  respond: Respond,
  allowed: unknown[] = [],
): Promise<{ code: number; text: string }> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return run(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, allowed);
}

async function run(t: TestContext, registry: string, allowed: unknown[] = []): Promise<{ code: number; text: string }> {
  const root = mkdtempSync(join(tmpdir(), 'wharfinger-audit-'));
  t.after(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'tools'));
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lockFile));
  writeFileSync(join(root, 'tools/audit-allow.json'), JSON.stringify(allowed));
  const env = { PATH: process.env.PATH, npm_config_registry: registry, AUDIT_TIMEOUT_MS: '1000' };
  return new Promise((resolve) => {
    execFile(process.execPath, [script, root], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, text: stdout + stderr }),
    );
  });
}

test('the check asks for every installed version, once per package', async (t) => {
  let asked: unknown;
  const { code, text } = await audit(t, async (req, res) => {
    assert.deepEqual([req.method, req.url], ['POST', '/-/npm/v1/security/advisories/bulk']);
    asked = await json(req);
    respondWith({})(req, res);
  });
  assert.deepEqual(asked, {
    used: ['1.2.3'],
    '@scope/nested': ['2.0.0', '3.0.0'],
    original: ['1.0.0'],
    'for-tests': ['1.0.0'],
  });
  assert.deepEqual({ code, text }, { code: 0, text: '5 packages checked: 0 known vulnerabilities, 0 to fix\n' });
});

test('a high or critical vulnerability of a production dependency fails the check', async (t) => {
  for (const severity of ['high', 'critical']) {
    const { code, text } = await audit(t, respondWith({ '@scope/nested': [advisory('GHSA-1', severity, '<2.5.0')] }));
    assert.equal(code, 1);
    assert.match(text, new RegExp(`^FAIL: ${severity}, production: @scope/nested 2\\.0\\.0: problem GHSA-1 https://`));
    assert.doesNotMatch(text, /3\.0\.0/);
  }
});

test('others are printed and do not fail the check', async (t) => {
  const { code, text } = await audit(
    t,
    respondWith({
      used: [advisory('GHSA-1', 'moderate', '*'), advisory('GHSA-2', 'critical', '>=2')],
      'for-tests': [advisory('GHSA-3', 'critical', '*')],
    }),
  );
  assert.equal(code, 0);
  assert.match(text, /^note: moderate, production: used 1\.2\.3: problem GHSA-1/m);
  assert.match(text, /^note: critical, development: for-tests 1\.0\.0/m);
  assert.doesNotMatch(text, /GHSA-2/);
});

test('an accepted vulnerability passes until its date', async (t) => {
  const found = respondWith({ used: [advisory('GHSA-1', 'high', '*')] });
  const entry = { advisory: 'GHSA-1', package: 'used', reason: 'not reachable', until: '9999-12-31' };
  const accepted = await audit(t, found, [entry]);
  assert.equal(accepted.code, 0);
  assert.match(accepted.text, /accepted until 9999-12-31: not reachable/);

  const expired = await audit(t, found, [{ ...entry, until: '2020-01-01' }]);
  assert.equal(expired.code, 1);
  assert.match(expired.text, /^FAIL: .*no longer accepted/);

  assert.equal((await audit(t, found, [{ ...entry, package: 'original' }])).code, 1);
  const unused = await audit(t, respondWith({}), [entry]);
  assert.equal(unused.code, 0);
  assert.match(unused.text, /GHSA-1 in tools\/audit-allow\.json is not found any more/);
  for (const missing of [{ reason: '' }, { until: 'soon' }, { until: '2027-02-31x' }]) {
    assert.equal((await audit(t, respondWith({}), [{ ...entry, ...missing }])).code, 1);
  }
});

test('the check says SKIPPED when the registry does not answer it', async (t) => {
  const silent: Respond = () => {};
  const reset: Respond = (req) => req.socket.destroy();
  const page: Respond = (_, res) => res.end('<html>log in</html>');
  const cases = [
    respondWith({}, 404),
    respondWith({}, 405),
    respondWith({}, 503),
    respondWith([]),
    silent,
    reset,
    page,
  ];
  for (const { code, text } of await Promise.all(cases.map((respond) => audit(t, respond)))) {
    assert.equal(code, 0, text);
    assert.match(text, /^SKIPPED: the check for known vulnerabilities did not run, because 127.* (answered|did not)/);
  }
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  closed.close();
  const { code, text } = await run(t, `http://127.0.0.1:${port}`);
  assert.equal(code, 0);
  assert.match(text, /^SKIPPED: .*ECONNREFUSED/);
});
