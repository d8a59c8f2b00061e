import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemResolverConfig } from './resolver-config.ts';

test('addresses of the hosts file, and candidate names by the search list', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'wharf-names-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [hosts, conf] = ['hosts', 'resolv.conf'].map((name) => join(directory, name)) as [string, string];
  const config = systemResolverConfig(hosts, conf);
  assert.deepEqual([await config.hostsFileAddresses('web'), await config.candidateNames('web')], [[], ['web']]);

  writeFileSync(hosts, '127.0.0.1 localhost\n10.0.0.1\tdb Web  # the old one\n# 10.0.0.9 web\nfd00::1 web\n');
  assert.deepEqual(await config.hostsFileAddresses('WEB'), ['10.0.0.1', 'fd00::1']);
  assert.deepEqual(await config.hostsFileAddresses('old'), []);

  writeFileSync(
    conf,
    'nameserver 10.0.0.10\nsearch prod.svc.cluster svc.cluster ; of the cluster\noptions timeout:1 ndots:2\n',
  );
  assert.deepEqual(await config.candidateNames('web'), ['web.prod.svc.cluster', 'web.svc.cluster', 'web']);
  assert.deepEqual(await config.candidateNames('web.prod.svc'), [
    'web.prod.svc',
    'web.prod.svc.prod.svc.cluster',
    'web.prod.svc.svc.cluster',
  ]);
  assert.deepEqual(await config.candidateNames('web.'), ['web.']);
});
