import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Result, runInProcess } from '../../src/cli/cli.testing.ts';
import { databases } from '../support/databases.ts';
import { buildImage, buildIndex, type OciClient, ociClient } from '../support/oci-client.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

type Json = Record<string, unknown> & { readonly uid: string };

describe('registry commands', () => {
  let server: TestServer;
  let client: OciClient;
  let scratch: string;

  before(async () => {
    server = await startTestServer(databases[0] ?? assert.fail());
    client = ociClient(server.url, `Bearer ${server.token}`);
    scratch = mkdtempSync(join(tmpdir(), 'wharf-cli-'));
  });
  after(async () => {
    client.close();
    await server.remove();
    rmSync(scratch, { recursive: true, force: true });
  });

  const wharf = (args: readonly string[], columns?: number): Promise<Result> =>
    runInProcess(
      args,
      { WHARF_SERVER: server.url, WHARF_DATA: server.dataLocation.dataDir, XDG_CONFIG_HOME: scratch },
      columns === undefined ? {} : { columns },
    );
  const json = async (...args: string[]): Promise<Json> => {
    const { code, stdout, stderr } = await wharf([...args, '-o', 'json']);
    assert.deepEqual([code, stderr], [0, ''], args.join(' '));
    return JSON.parse(stdout);
  };
  const newRepo = (name: string): Promise<Json> =>
    json('repos', 'create', '--parent', server.organization, '--name', name);

  test('repos can be created, read, updated, listed and deleted', async () => {
    const repo = await newRepo('cli-life');
    assert.deepEqual(await json('repos', 'get', repo.uid), repo);
    const changed = await json('repos', 'update', repo.uid, '--description', 'an app', '--aliases', 'a:b');
    assert.deepEqual([changed.description, changed.aliases], ['an app', ['a:b']]);
    const { stdout } = await wharf(['repos', 'list', '--name', 'cli-life']);
    assert.match(stdout, new RegExp(`^UID +NAME +DESCRIPTION +UPDATED\\n${repo.uid} +cli-life +an app +\\d{4}-`));
    assert.equal((await wharf(['repos', 'delete', repo.uid])).stdout, `deleted ${repo.uid}\n`);
    assert.equal((await wharf(['repos', 'get', repo.uid])).code, 5);
  });

  test('the life cycles of versions can be declared, changed, listed and deleted', async () => {
    const repo = await newRepo('cli-lifecycles');
    const dates = ['--release-date', '2023-10-02', '--eol-date', '2028-10-31'];
    const made = await json('repos', 'lifecycles', 'create', '--parent', repo.uid, '--version', '3.12', ...dates);
    assert.deepEqual([made.version, made.releaseDate, made.eolDate], ['3.12', '2023-10-02', '2028-10-31']);
    const expiry = ['--grace-period-expiry-date', '2029-04-30', '--main-package-name', 'python-3.12'];
    const changed = await json('repos', 'lifecycles', 'update', made.uid, ...expiry);
    assert.deepEqual([changed.eolDate, changed.gracePeriodExpiryDate], ['2028-10-31', '2029-04-30']);
    assert.deepEqual(await json('repos', 'lifecycles', 'get', made.uid), changed);
    const { stdout } = await wharf(['repos', 'lifecycles', 'list', '--children-of', repo.uid]);
    assert.match(stdout, new RegExp(`\\n${made.uid} +3\\.12 +python-3\\.12 +2023-10-02 +2028-10-31 +2029-04-30\\n`));
    const wrong = await wharf(['repos', 'lifecycles', 'update', made.uid, '--eol-date', 'soon']);
    assert.equal(wrong.code, 8);
    assert.match(wrong.stderr, /eol_date.*must be a date, such as 2026-01-31/s);
    assert.equal((await wharf(['repos', 'lifecycles', 'delete', made.uid])).stdout, `deleted ${made.uid}\n`);
  });

  test('a README is set from a file and read back', async () => {
    const { uid } = await newRepo('cli-readme');
    const content = '# App\n\nSay *hello* to \u001b[31mthis\n';
    const file = join(scratch, 'README.md');
    writeFileSync(file, content);
    assert.equal((await json('repos', 'readme', 'set', uid, '--content', `@${file}`)).content, content.trimEnd());
    assert.equal((await wharf(['repos', 'readme', 'get', uid])).stdout, content.trimEnd());
    // On a terminal, control characters are escaped.
    assert.match(
      (await wharf(['repos', 'readme', 'get', uid], 80)).stdout,
      /# App\n\nSay \*hello\* to \\u001b\[31mthis\n$/,
    );
    writeFileSync(file, '<script>alert(1)</script>');
    const refused = await wharf(['repos', 'readme', 'set', uid, '--content', `@${file}`]);
    assert.deepEqual([refused.code, /active content/.test(refused.stderr)], [8, true]);
  });

  test('pushed tags and images can be listed and inspected', async () => {
    const name = 'my-org/cli-image';
    const images = { amd64: buildImage('amd64', Buffer.from('one')), arm64: buildImage('arm64', Buffer.from('other')) };
    for (const { blobs, manifest } of Object.values(images)) {
      for (const blob of blobs) await client.pushBlob(name, blob);
      await client.pushManifest(name, manifest.digest, manifest);
    }
    const index = buildIndex({ amd64: images.amd64.manifest, arm64: images.arm64.manifest });
    await client.pushManifest(name, 'v1', index);

    const { repos } = (await json('repos', 'list', '--name', 'cli-image')) as unknown as { repos: Json[] };
    const repo = repos[0]?.uid ?? '';
    const made = await json(
      'tags',
      'create',
      '--parent',
      repo,
      '--name',
      'v2',
      '--digest',
      index.digest,
      '--deprecated',
    );
    assert.equal(made.deprecated, true);
    const { tags } = (await json('tags', 'list', '--children-of', repo, '--order-by', 'name')) as unknown as {
      tags: Json[];
    };
    assert.deepEqual(
      tags.map((tag) => [tag.name, tag.digest, tag.deprecated]),
      [
        ['v1', index.digest, false],
        ['v2', index.digest, true],
      ],
    );
    assert.equal((await wharf(['tags', 'delete', made.uid])).code, 0);

    const { stdout } = await wharf(['images', 'architectures', repo, index.digest]);
    assert.equal(stdout, 'architectures  amd64\n               arm64\n');
    const size = await json('images', 'size', repo, index.digest, '--architecture', 'arm64');
    assert.deepEqual(size, { size: String(images.arm64.size), architecture: 'arm64' });
    assert.equal((await wharf(['images', 'size', repo, index.digest, '--architecture', 'vax'])).code, 5);
  });
});
