import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { Code } from '../../src/base/errors.ts';
import { v1Files } from '../../src/contract/gen/files.js';
import type { Method } from '../../src/contract/method.ts';
import { methodTable } from '../../src/contract/method-table.ts';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { missingFields } from '../support/printed-fields.ts';
import { requestWithUid } from '../support/request-with-uid.ts';
import { CallError } from '../support/wires.ts';

const PREFIX = 'chainguard.platform.';
const methods = methodTable(v1Files);

/** Requests that match nothing, for lists whose filters contain no uid. */
const EMPTY_REQUESTS: Readonly<Record<string, (missingUid: string) => object[]>> = {
  'libraries.Artifacts/List': () => [{ query: 'nothing like it' }],
  'libraries.Malware/ListBlockList': () => [{ packageName: 'nothing' }, { ecosystem: 'npm', source: 'nothing' }],
  'libraries.NpmPackages/List': () => [{ query: 'nothing like it' }],
  'libraries.NpmPackages/ListVersions': () => [{ packageName: 'nothing' }],
  'advisory.SecurityAdvisory/ListDocuments': () => [{ id: 'nothing' }, { cves: ['CVE-1999-0001'] }],
  'advisory.SecurityAdvisory/ListVulnerabilityMetadata': () => [{ id: 'CVE-1999-0001' }],
  'advisory.SecurityAdvisory/ListResolvedVulnsReports': (repo) => [{}, { imageRefs: [{ repo }] }],
  'registry.Registry/ListManifestMetadata': (repoId) => [
    { repoId, items: [{ filter: { case: 'imageDigest', value: `sha256:${'0'.repeat(64)}` } }] },
  ],
};

/** Returns a request for each field of a filter that names a resource. */
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

onEveryDatabaseAndWire('v1 as a whole', (fixture) => {
  const isOnWire = ({ routes }: Method) => fixture.wire === 'gRPC' || routes.length > 0;
  const missingUid = () => `${fixture.org}/${'0'.repeat(16)}`;

  test('every method is served', async () => {
    const missing: string[] = [];
    for (const method of methods.filter(isOnWire)) {
      await fixture.api.call(method.desc, requestWithUid(method, missingUid()) as never).catch((error: unknown) => {
        assert.ok(error instanceof CallError, String(error));
        if (error.code === Code.UNIMPLEMENTED) missing.push(method.id.replace(PREFIX, ''));
      });
    }
    assert.deepEqual(missing, []);
  });

  test('a list that matches nothing is empty', async () => {
    const lists = methods.filter(({ desc }) => desc.name.startsWith('List')).filter(isOnWire);
    assert.ok(lists.length > 20);
    for (const { id, desc } of lists) {
      const name = id.replace(PREFIX, '');
      const requests = EMPTY_REQUESTS[name]?.(missingUid()) ?? requestsFor(desc.input, missingUid());
      assert.notEqual(requests.length, 0, `${name} names nothing`);
      for (const request of requests) {
        const label = `${name} ${JSON.stringify(request)}`;
        let json: JsonValue = {};
        const options = { token: fixture.server.token, onJson: (received: JsonValue) => (json = received) };
        const response = await fixture.api
          .call(desc, request as never, options)
          .catch((error) => assert.fail(`${label}: ${error}`));
        if (fixture.wire === 'REST') {
          assert.deepEqual(missingFields(desc.output, json), [], label);
          if (desc.output.field.totalCount) assert.equal((json as JsonObject).totalCount, '0', label);
        }
        for (const { localName } of desc.output.fields.filter(({ fieldKind }) => fieldKind === 'list')) {
          assert.deepEqual((response as unknown as Record<string, unknown>)[localName], [], label);
        }
      }
    }
  });
});
