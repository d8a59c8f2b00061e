import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMessage } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import type { Method } from '../../src/contract/method.ts';
import { methodTable } from '../../src/contract/method-table.ts';
import { v1Files } from '../../src/contract/v1-files.ts';
import { everywhere } from '../support/every-database-and-wire.ts';
import { requestAt } from '../support/requests.ts';
import { CallError } from '../support/wires.ts';

const PREFIX = 'chainguard.platform.';
const methods = methodTable(v1Files);

/** docs/DECISIONS.md says why. */
const NOT_SERVED = ['auth.Auth/GetHeadlessSession'];

/** Lists whose filters name nothing by a uid, and how they are asked for what is not there. */
const ASKED: Readonly<Record<string, (nowhere: string) => object[]>> = {
  'libraries.Artifacts/List': () => [{ query: 'nothing like it' }],
  'advisory.SecurityAdvisory/ListDocuments': () => [{ id: 'nothing' }, { cves: ['CVE-1999-0001'] }],
  'advisory.SecurityAdvisory/ListVulnerabilityMetadata': () => [{ id: 'CVE-1999-0001' }],
  'advisory.SecurityAdvisory/ListResolvedVulnsReports': (repo) => [{}, { imageRefs: [{ repo }] }],
  'registry.Registry/ListManifestMetadata': (repoId) => [
    { repoId, items: [{ filter: { case: 'imageDigest', value: `sha256:${'0'.repeat(64)}` } }] },
  ],
};

/** One request for each way in which a filter can name a resource. */
function requestsFor(input: DescMessage, uid: string): object[] {
  return input.fields.flatMap(({ name, localName, message, fieldKind }): object[] => {
    if (message?.typeName.endsWith('.UIDPFilter')) {
      return [{ childrenOf: uid }, { descendantsOf: uid }, { ids: [uid] }].map((filter) => ({ [localName]: filter }));
    }
    return fieldKind === 'scalar' && /^(id|group|repo|parent|(?!key)\w+_(id|uidp))$/.test(name)
      ? [{ [localName]: uid }]
      : [];
  });
}

everywhere('v1 as a whole', (bench) => {
  const isOnWire = ({ routes }: Method) => bench.wire === 'gRPC' || routes.length > 0;
  const nowhere = () => `${bench.org}/${'0'.repeat(16)}`;

  test('every method is served', async () => {
    const missing: string[] = [];
    for (const method of methods.filter(isOnWire)) {
      await bench.api.call(method.desc, requestAt(method, nowhere()) as never).catch((error: unknown) => {
        assert.ok(error instanceof CallError, String(error));
        if (error.code === Code.UNIMPLEMENTED) missing.push(method.id.replace(PREFIX, ''));
      });
    }
    assert.deepEqual(missing, NOT_SERVED);
  });

  test('a list of what is not there is empty', async () => {
    const lists = methods.filter(({ desc }) => desc.name.startsWith('List')).filter(isOnWire);
    assert.ok(lists.length > 20);
    for (const { id, desc } of lists) {
      const name = id.replace(PREFIX, '');
      const requests = ASKED[name]?.(nowhere()) ?? requestsFor(desc.input, nowhere());
      assert.notEqual(requests.length, 0, `${name} names nothing`);
      for (const request of requests) {
        const asked = `${name} ${JSON.stringify(request)}`;
        const answer = await bench.api.call(desc, request as never).catch((error) => assert.fail(`${asked}: ${error}`));
        for (const { localName } of desc.output.fields.filter(({ fieldKind }) => fieldKind === 'list')) {
          assert.deepEqual((answer as unknown as Record<string, unknown>)[localName], [], asked);
        }
      }
    }
  });
});
