import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { type Result, runInProcess } from '../../src/cli/cli.testing.ts';
import { databases } from '../support/databases.ts';
import { ociClient, pushImage } from '../support/oci-client.ts';
import { asBytes, grypeReport, trivyReport } from '../support/scans.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

describe('report commands', () => {
  let server: TestServer;
  let scratch: string;
  let digest: string;
  before(async () => {
    server = await startTestServer(databases[0] ?? assert.fail());
    scratch = mkdtempSync(join(tmpdir(), 'wharf-cli-'));
    const client = ociClient(server.url, `Bearer ${server.token}`);
    digest = (await pushImage(client, 'my-org/app', 'latest')).digest;
    client.close();
  });
  after(async () => {
    await server.remove();
    rmSync(scratch, { recursive: true, force: true });
  });

  const wharf = (...args: string[]): Promise<Result> =>
    runInProcess(args, { WHARF_SERVER: server.url, WHARF_DATA: server.dataLocation.dataDir, XDG_CONFIG_HOME: scratch });
  const file = (name: string, content: Uint8Array): string => {
    const path = join(scratch, name);
    writeFileSync(path, content);
    return path;
  };
  const summary = ({ stdout }: Result) => stdout.replace(/ in .*\n/, '');

  test('reports are imported once, listed and shown', async () => {
    const found = [{ id: 'CVE-2026-1', severity: 'Critical', fixed: '3.0.2' }, { id: 'CVE-2026-2' }];
    const grype = file(
      'grype.json',
      Buffer.concat([asBytes(grypeReport({ findings: found, digest })), Buffer.from('\n')]),
    );
    const trivy = file('trivy.json.gz', gzipSync(JSON.stringify(trivyReport({ findings: [] }), undefined, 2)));
    const first = await wharf('reports', 'import', grype, '--repo', 'app');
    assert.deepEqual([first.code, summary(first)], [0, 'reports: 1 created, 0 updated, 0 unchanged, 0 refused']);
    const both = await wharf('reports', 'import', grype, trivy, '--repo', 'app', '--digest', digest);
    assert.equal(summary(both), 'reports: 1 created, 0 updated, 1 unchanged, 0 refused');

    const { stdout } = await wharf('reports', 'list');
    const [header, ...rows] = stdout.trimEnd().split('\n');
    assert.match(header ?? '', /^UID +SCANNER +SCANNED +CRITICAL +HIGH/);
    assert.equal(rows.length, 2);
    const row = rows.find((line) => line.includes('GRYPE')) ?? assert.fail(stdout);
    assert.match(row, /2026-08-01T12:00:00Z +1 +1 +0 +0 +0 +0 +sha256:/);

    const shown = await wharf('reports', 'show', row.split(' ', 1)[0] ?? '');
    assert.match(shown.stdout, /^counts\.critical +1$/m);
    assert.match(shown.stdout, /^CVE-2026-1 +SEVERITY_CRITICAL +openssl +3\.0\.1-1 +3\.0\.2$/m);
    const json = await wharf('reports', 'show', row.split(' ', 1)[0] ?? '', '-o', 'json');
    assert.equal(JSON.parse(json.stdout).findings.length, 2);
  });

  test('a refused report is named, and the others are imported', async () => {
    const bad = file('bad.json', asBytes({ ...grypeReport({ findings: [] }), matches: [{}] }));
    const good = file('good.json', asBytes(grypeReport({ findings: [], time: '2026-08-05T00:00:00Z' })));
    const result = await wharf('reports', 'import', bad, good, '--repo', 'app', '--digest', digest);
    assert.equal(result.code, 8);
    assert.equal(summary(result), 'reports: 1 created, 0 updated, 0 unchanged, 1 refused');
    assert.match(result.stderr, /bad\.json:1: sha256:\w+: matches\[0\]\.vulnerability\.id: must be one word/);
    const missing = await wharf('reports', 'import', good, '--repo', 'no-such-repo');
    assert.deepEqual([missing.code, missing.stderr.includes('no repo is named')], [2, true]);
  });
});
