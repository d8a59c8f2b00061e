import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { stringify } from 'yaml';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { databases } from '../support/databases.ts';
import { buildImage, pushImage } from '../support/oci-client.ts';
import { createOciFixture } from '../support/oci-fixture.ts';
import { pollUntil } from '../support/poll-until.ts';
import { promtool, promtoolSkip } from '../support/promtool.ts';
import { startTestServer } from '../support/server.ts';
import { alertRules, dashboardExpressions, metricNamesIn, namesIn } from './metric-names.ts';

const readMetrics = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text();

/** The value of a series, written as in the text format. */
function seriesValue(metrics: string, series: string): number | undefined {
  const line = metrics.split('\n').find((candidate) => candidate.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length));
}

/** When the older of the two parts of the statistics was read. */
const statisticsTime = (metrics: string) =>
  Math.min(
    ...['statistics', 'blobs'].map(
      (part) => seriesValue(metrics, `wharf_storage_statistics_timestamp_seconds{part="${part}"}`) ?? 0,
    ),
  );
const cpuSeconds = (metrics: string) => seriesValue(metrics, 'process_cpu_seconds_total');

/** Made by Prometheus. */
const NOT_SERVED = new Set(['up']);

for (const database of databases) {
  describe(`metrics on ${database.name}`, () => {
    let time = Date.now();
    const fixture = createOciFixture(database, { env: { WHARF_ORG_METRICS: 'true' }, clock: () => time });

    /** The metrics after statistics of the storage were read that are newer than this call. */
    async function freshMetrics(): Promise<string> {
      time += 61_000;
      return pollUntil(
        () => readMetrics(fixture.server.url),
        (text) => statisticsTime(text) === time / 1000,
      );
    }

    test('the gauges of the storage are those of the database', async () => {
      const { server, api, owner, db } = fixture;
      const team = await fixture.newTeam();
      const other = await api.call(GroupsService.method.createGroup, {
        group: { name: `other-${database.name.toLowerCase()}` },
      });
      const layer = 'content '.repeat(1_000);
      await pushImage(owner, `${team.name}/app`, 'latest', layer);
      // The same blobs once more: they are stored once.
      await pushImage(owner, `${team.name}/copy`, 'latest', layer);
      await owner.send('POST', `/v2/${team.name}/app/blobs/uploads/`);

      const metrics = await freshMetrics();
      const rows = await db.all<{ kind: string; n: number }>('SELECT kind, count(*) AS n FROM resource GROUP BY kind');
      assert.ok(rows.length >= 5, 'several kinds');
      for (const { kind, n } of rows) assert.equal(seriesValue(metrics, `wharf_resources{kind="${kind}"}`), n, kind);
      assert.equal(seriesValue(metrics, 'wharf_organizations'), 2);
      assert.equal(seriesValue(metrics, 'wharf_registry_blobs'), 2);
      assert.equal(seriesValue(metrics, 'wharf_registry_blob_bytes'), buildImage('amd64', Buffer.from(layer)).size);
      assert.equal(seriesValue(metrics, 'wharf_registry_uploads'), 1);
      assert.ok((seriesValue(metrics, 'wharf_database_size_bytes') ?? 0) > 100_000);
      assert.ok((seriesValue(metrics, 'wharf_disk_free_bytes') ?? 0) > 0);
      assert.ok(
        (seriesValue(metrics, 'wharf_disk_free_bytes') ?? 0) <= (seriesValue(metrics, 'wharf_disk_size_bytes') ?? 0),
      );
      const label = `organization="${server.organization}"`;
      assert.equal(seriesValue(metrics, `wharf_organization_info{${label},name="my-org"}`), 1);
      assert.equal(seriesValue(metrics, `wharf_organization_resources{${label},kind="repo"}`), 2);
      const stored = await db.get<{ bytes: number }>('SELECT bytes FROM organization_storage');
      assert.equal(seriesValue(metrics, `wharf_organization_storage_bytes{${label}}`), stored?.bytes);
      assert.equal(seriesValue(metrics, `wharf_organization_storage_bytes{organization="${other.uid}"}`), 0);
    });

    // Takes seconds, because metrics are shared for one. The database makes no difference.
    const skip = database.name !== 'SQLite';
    test('the statistics of the storage are not read again within a minute', { skip }, async () => {
      const before = await freshMetrics();
      time += 50_000;
      // Metrics are shared for a second. Then they are collected again.
      const after = await pollUntil(
        () => readMetrics(fixture.server.url),
        (text) => cpuSeconds(text) !== cpuSeconds(before),
      );
      assert.equal(statisticsTime(after), statisticsTime(before));
    });

    test('the server describes its own state', async () => {
      const metrics = await readMetrics(fixture.server.url);
      assert.equal(seriesValue(metrics, 'wharf_ready'), 1);
      assert.match(metrics, /^wharf_event_loop_delay_p99_seconds 0?\.?\d/m);
      const used = seriesValue(metrics, 'wharf_database_connections{state="used"}');
      if (database.name === 'SQLite') assert.equal(used, undefined);
      else assert.ok(used !== undefined && used >= 0);
    });

    test('Prometheus accepts the metrics', { skip: promtoolSkip }, async () => {
      promtool(['check', 'metrics'], await readMetrics(fixture.server.url));
    });

    test('the alert rules and the dashboard use only metrics that the server has', async () => {
      const names = namesIn(await readMetrics(fixture.server.url));
      const expressions = [...alertRules().map(({ expr }) => expr), ...dashboardExpressions()];
      const used = new Set(expressions.flatMap(metricNamesIn));
      assert.ok(used.size > 30, 'names were found');
      assert.deepEqual(
        [...used].filter((name) => !names.has(name) && !NOT_SERVED.has(name)),
        [],
      );
    });
  });
}

test('the certificate in use tells when it expires', async () => {
  const file = (name: string) => new URL(`../data/tls/${name}.pem`, import.meta.url).pathname;
  const server = await startTestServer(databases[0] ?? assert.fail(), {
    env: {
      WHARF_TLS_CERT: file('cert'),
      WHARF_TLS_KEY: file('key'),
      WHARF_OPERATIONS_LISTEN: '127.0.0.1:0',
    },
  });
  try {
    const metrics = await readMetrics(server.operationsUrl ?? assert.fail());
    const expiry = new X509Certificate(readFileSync(file('cert'))).validToDate.getTime() / 1000;
    assert.equal(seriesValue(metrics, 'wharf_tls_certificate_expiry_timestamp_seconds'), expiry);
    // Only with WHARF_ORG_METRICS.
    assert.doesNotMatch(metrics, /wharf_organization_/);
  } finally {
    await server.remove();
  }
});

describe('files for Prometheus and Grafana', { skip: promtoolSkip }, () => {
  const path = (name: string): string => new URL(`../../${name}`, import.meta.url).pathname;

  test('the alert rules and the scrape configuration are valid', () => {
    promtool(['check', 'rules', path('deploy/prometheus/alerts.yaml')]);
    promtool(['check', 'config', path('deploy/prometheus/scrape.yaml')]);
  });

  test('the alerts fire when they should', () => {
    const files = ['alerts', 'alerts-days'].map((name) => path(`test/monitoring/${name}.test.yaml`));
    promtool(['test', 'rules', ...files]);
  });

  test('every expression of the dashboard is valid', () => {
    const directory = mkdtempSync(join(tmpdir(), 'wharf-dashboard-'));
    try {
      const rules = dashboardExpressions().map((expr, index) => ({ record: `panel:${index}`, expr }));
      assert.ok(rules.length > 30);
      writeFileSync(join(directory, 'rules.yaml'), stringify({ groups: [{ name: 'dashboard', rules }] }));
      promtool(['check', 'rules', join(directory, 'rules.yaml')]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
