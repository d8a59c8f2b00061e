import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { runInProcess, wharf } from '../../src/cli/cli.testing.ts';
import { ExitCode } from '../../src/cli/exit-codes.ts';
import { registryDirectory } from '../../src/oci/registry-directory.ts';
import type { Finding } from '../../src/oci/verify/verify-registry.ts';
import { buildImage, buildIndex, digestOf, pushImage } from '../support/oci-client.ts';
import { onEveryDatabase } from '../support/oci-fixture.ts';

onEveryDatabase('wharf registry verify beside a running server', (fixture) => {
  let env: Record<string, string>;
  let registry: string;
  before(() => {
    const { dataDir, databaseUrl } = fixture.server.dataLocation;
    env = { WHARF_DATA: dataDir, ...(databaseUrl !== undefined && { WHARF_DATABASE_URL: databaseUrl }) };
    registry = registryDirectory(dataDir);
  });
  const verify = (...args: string[]) => runInProcess(['registry', 'verify', ...args], env);
  const findings = async (...args: string[]): Promise<Finding[]> => {
    const { stdout, stderr } = await verify('-o', 'json', ...args);
    try {
      return JSON.parse(stdout).findings;
    } catch {
      return assert.fail(stderr);
    }
  };
  const fileOf = (digest: string): string => join(registry, 'blobs/sha256', digest.slice(7, 9), digest.slice(7));
  const status = async (verb: string, name: string, digest: string) =>
    (await fixture.owner.send(verb, `/v2/${name}/blobs/${digest}`)).status;

  test('says that all blobs are intact', async () => {
    const team = await fixture.newTeam();
    await pushImage(fixture.owner, `${team.name}/app`, 'v1');
    const { code, stdout, stderr } = await verify();
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^verified \d+ blobs, .*: all are intact\n$/);
  });

  test('finds changed bytes, names the images, and with --quarantine lets a push repair them', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/app`;
    const layer = Buffer.from(`a layer of ${name}`);
    const image = buildImage('amd64', layer);
    for (const blob of image.blobs) await fixture.owner.pushBlob(name, blob);
    await fixture.owner.pushManifest(name, 'v1', image.manifest);
    await fixture.owner.pushManifest(name, 'multi', buildIndex({ amd64: image.manifest }));
    await fixture.owner.pushBlob(`${name}-copy`, layer);
    await pushImage(fixture.owner, name, 'other');
    const digest = digestOf(layer);
    const damaged = Buffer.from(layer);
    damaged[0] = (damaged[0] ?? 0) ^ 1;
    writeFileSync(fileOf(digest), damaged);
    assert.equal(await status('HEAD', name, digest), 200, 'the size is right');

    const { code, stdout, stderr } = await wharf(['registry', 'verify'], env);
    assert.equal(code, ExitCode.damaged, stderr);
    assert.match(
      stdout,
      new RegExp(`^${digest}: damaged\n  ${name} :multi :v1\n  ${name}-copy \\(no image needs it\\)\n`, 'm'),
    );
    assert.match(
      stderr,
      /^wharf: 1 blobs are damaged or missing: run it with --quarantine if any is damaged, then push/,
    );
    assert.equal(await status('HEAD', name, digest), 200, 'without the flag nothing changes');

    const [finding, ...others] = await findings('--quarantine');
    assert.deepEqual(others, []);
    assert.equal(finding?.isQuarantined, true);
    assert.deepEqual(finding?.affected[0]?.tags, ['multi', 'v1']);
    assert.deepEqual(readFileSync(join(registry, 'quarantine', digest.replace(':', '-'))), damaged);
    assert.deepEqual([await status('HEAD', name, digest), await status('GET', name, digest)], [404, 404]);
    assert.equal((await findings())[0]?.problem, 'missing', 'until it is pushed again');

    await fixture.owner.pushBlob(name, layer);
    assert.deepEqual((await fixture.owner.send('GET', `/v2/${name}-copy/blobs/${digest}`)).body, layer);
    assert.deepEqual(await findings(), []);
  });

  test('finds blobs whose file is missing, and not those that no repo has any more', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/app`;
    const { digest } = await pushImage(fixture.owner, name, 'v1', 'missing layer');
    const unlinked = await fixture.owner.pushBlob(name, Buffer.from('deleted by its owner'));
    await fixture.owner.send('DELETE', `/v2/${name}/blobs/${unlinked}`);
    const layer = digestOf(Buffer.from('missing layer'));
    for (const blob of [layer, unlinked]) rmSync(fileOf(blob));
    assert.deepEqual(await findings(), [
      {
        digest: layer,
        problem: 'missing',
        isQuarantined: false,
        affected: [{ repository: name, manifests: [digest], tags: ['v1'] }],
      },
    ]);
    await fixture.owner.pushBlob(name, Buffer.from('missing layer'));
  });

  test('resumes after the last verified blob, and verifies earlier findings again', async () => {
    const team = await fixture.newTeam();
    const name = `${team.name}/app`;
    for (let n = 0; n < 10; n++) await fixture.owner.pushBlob(name, Buffer.from(`blob ${n}`));
    const digests = [...Array(10).keys()].map((n) => digestOf(Buffer.from(`blob ${n}`))).sort();
    const [first = '', , , middle = ''] = digests;
    const entry = { digest: first, size: 6, changed: 0, problem: 'damaged' };
    const cursor = join(registry, 'verify.json');
    writeFileSync(fileOf(digests[1] ?? ''), 'not seen again');
    writeFileSync(cursor, JSON.stringify({ after: middle, blobs: 4, bytes: 24, problems: [entry] }));
    const { code, stdout, stderr } = await verify();
    assert.equal(code, 0, 'the first blob was repaired meanwhile, and the second one was verified before');
    assert.match(stderr, new RegExp(`^wharf: resuming after ${middle} \\(4 blobs\\); --restart begins again`));
    assert.match(stdout, /all are intact/);
    assert.ok(!readdirSync(registry).includes('verify.json'), 'the next one begins again');
    assert.equal((await findings('--quarantine'))[0]?.digest, digests[1]);
    await fixture.owner.pushBlob(
      name,
      [...Array(10).keys()].map((n) => Buffer.from(`blob ${n}`)).find((blob) => digestOf(blob) === digests[1]) ??
        Buffer.alloc(0),
    );
  });

  test('says what a rate looks like', async () => {
    const { code, stderr } = await verify('--rate', 'fast');
    assert.equal(code, ExitCode.usage);
    assert.match(stderr, /--rate.*write a size from 64KiB to 1TiB/);
    assert.equal((await verify('--rate', '500MiB/s')).code, 0);
  });
});
