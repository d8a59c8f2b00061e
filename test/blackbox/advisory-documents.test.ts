import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { Code } from '../../src/base/errors.ts';
import {
  type ListDocumentsRequest,
  type ListVulnerabilityMetadataRequest,
  SecurityAdvisoryService,
} from '../../src/contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { GroupsService } from '../../src/contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import {
  type Advisory,
  type AdvisorySchema,
  ReviewState,
} from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { VulnerabilityImportsService } from '../../src/contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { callerWithoutRole, callerWithRole } from '../support/callers.ts';
import { type Database, databases } from '../support/databases.ts';
import { rejects } from '../support/rejects.ts';
import { startServerOn, type TestServer } from '../support/server.ts';
import { type Client, type Wire, wires } from '../support/wires.ts';

const { listDocuments, listVulnerabilityMetadata } = SecurityAdvisoryService.method;
const { importAdvisories } = AdvisoryImportsService.method;
const { importVulnerabilities } = VulnerabilityImportsService.method;

type AdvisoryInit = Exclude<MessageInitShape<typeof AdvisorySchema>, Advisory>;
type RequestFields<M> = Partial<Omit<M, '$typeName' | '$unknown'>>;

const detected = {
  createTime: timestampFromMs(1000),
  type: {
    case: 'detection' as const,
    value: { type: { case: 'scanv1' as const, value: { scanner: 'grype', subpackage: 'libssl', component: 'ssl' } } },
  },
};
const fixed = (fixedVersion: string, init: object = {}) => ({
  ...init,
  createTime: timestampFromMs(2000),
  type: { case: 'fixed' as const, value: { fixedVersion, note: 'not for documents' } },
});

const PUBLIC: AdvisoryInit[] = [
  { advisoryId: 'CGA-3333-3333-3333', artifactName: 'openssl', aliases: ['CVE-1-1'], events: [detected, fixed('3')] },
  { advisoryId: 'CGA-2222-2222-2222', artifactName: 'openssl', aliases: ['CVE-1-2'] },
  { advisoryId: 'CGA-4444-4444-4444', artifactName: 'zlib', aliases: ['CVE-1-1'] },
  { advisoryId: 'CGA-5555-5555-5555', artifactName: 'curl', deleteTime: timestampFromMs(5000) },
  {
    advisoryId: 'CGA-6666-6666-6666',
    artifactName: 'bash',
    legacyAdvisoryId: 'OLD-1',
    events: [
      fixed('1', { reviewState: ReviewState.REJECTED }),
      {
        type: { case: 'falsePositiveDetermination', value: { type: 3, note: 'no' } },
        createTime: timestampFromMs(3000),
      },
      { type: { case: 'patched', value: { patchedVersions: ['1'] } }, createTime: timestampFromMs(4000) },
      { type: { case: 'pendingUpstreamFix', value: { note: 'soon' } }, createTime: timestampFromMs(5000) },
    ],
  },
];
const PRIVATE: AdvisoryInit[] = [
  { advisoryId: 'CGA-7777-7777-7777', artifactName: 'openssl', aliases: ['CVE-1-3'] },
  { advisoryId: 'CGA-8888-8888-8888', artifactName: 'secret', aliases: ['CVE-1-1'] },
];

/** Starts a server with advisories in a public group and in another one. */
async function startServerWithAdvisories(database: Database) {
  const dataLocation = await database.createDataLocation();
  const first = await startServerOn(dataLocation);
  const api = wires[0]?.connect(first.url, first.token) ?? assert.fail();
  const groups: string[] = [];
  for (const name of ['open', 'closed']) {
    groups.push(
      (await api.call(GroupsService.method.createGroup, { parent: first.organization, group: { name } })).uid,
    );
  }
  const [open = '', closed = ''] = groups;
  await api.call(importAdvisories, { parent: open, advisories: PUBLIC });
  await api.call(importAdvisories, { parent: closed, advisories: PRIVATE });
  const vulnerabilities = ['CVE-1-2', 'CVE-1-1', 'GHSA-1'].map((id) => ({
    id,
    summary: `About ${id}`,
    aliases: id === 'CVE-1-2' ? ['GHSA-22', 'PYSEC-2'] : [],
  }));
  await api.call(importVulnerabilities, { parent: open, vulnerabilities });
  await api.call(importVulnerabilities, {
    parent: closed,
    vulnerabilities: [{ id: 'CVE-1-3', details: '# Secret', aliases: ['GHSA-33'] }],
  });
  api.close();
  await first.stop();
  const server = await startServerOn(dataLocation, { env: { WHARF_PUBLIC_ADVISORY_GROUPS: open } });
  return { server, open, closed };
}

for (const database of databases) {
  describe(`advisory documents on ${database.name}`, () => {
    let server: TestServer;
    let open: string;
    let closed: string;
    before(async () => {
      ({ server, open, closed } = await startServerWithAdvisories(database));
    });
    after(() => server.remove());

    for (const wire of wires) {
      describe(`over ${wire.name}`, () => suite(wire));
    }

    function suite(wire: Wire): void {
      let anonymous: Client;
      let owner: Client;
      before(() => {
        anonymous = wire.connect(server.url, undefined);
        owner = wire.connect(server.url, server.token);
      });
      after(() => {
        anonymous.close();
        owner.close();
      });

      async function documents(
        request: RequestFields<ListDocumentsRequest> = {},
        client = anonymous,
      ): Promise<string[]> {
        const { documents, totalCount } = await client.call(listDocuments, request);
        assert.equal(totalCount, BigInt(documents.length + (request.skip ?? 0)));
        return documents.map(({ id, advisories }) => [id, ...advisories.map((one) => one.id.slice(0, 8))].join(' '));
      }
      async function metadataIds(
        request: RequestFields<ListVulnerabilityMetadataRequest> = {},
        client = anonymous,
      ): Promise<string[]> {
        const page = await client.call(listVulnerabilityMetadata, request);
        assert.equal(page.totalCount, BigInt(page.vulnerabilityMetadata.length));
        return page.vulnerabilityMetadata.map(({ id }) => id);
      }

      test('anonymous callers see public documents, members also those that they may list, the owner all', async () => {
        const shown = ['bash CGA-6666', 'curl', 'openssl CGA-2222 CGA-3333', 'zlib CGA-4444'];
        assert.deepEqual(await documents(), shown);
        const all = ['bash CGA-6666', 'curl', 'openssl CGA-2222 CGA-3333 CGA-7777', 'secret CGA-8888', 'zlib CGA-4444'];
        assert.deepEqual(await documents({}, owner), all);
        for (const [token, visible, seesMetadata] of [
          [await (await callerWithRole(server, 'viewer', closed)).token(), all, true],
          [await (await callerWithRole(server, 'viewer', open)).token(), shown, false],
          [await (await callerWithoutRole(server, closed)).token(), shown, false],
        ] as const) {
          const client = wire.connect(server.url, token);
          assert.deepEqual(await documents({}, client), visible);
          assert.equal((await metadataIds({}, client)).includes('CVE-1-3'), seesMetadata);
          client.close();
        }
        for (const method of [listDocuments, listVulnerabilityMetadata]) {
          await rejects(anonymous.call(method, {}, { token: 'nonsense' }), Code.UNAUTHENTICATED);
        }
      });

      test('a document has the events of its advisories, oldest first', async () => {
        const { documents } = await anonymous.call(listDocuments, { id: 'openssl' });
        const events = documents[0]?.advisories[1]?.events ?? [];
        assert.deepEqual(
          events.map(({ timestamp, data }) => [timestamp?.seconds, data.case]),
          [
            [1n, 'detection'],
            [2n, 'fixed'],
          ],
        );
        assert.partialDeepStrictEqual(events[0]?.data.value, {
          type: { case: 'scanv1', value: { scanner: 'grype', subpackageName: 'libssl', componentName: 'ssl' } },
        });
        assert.partialDeepStrictEqual(events[1]?.data.value, { fixedVersion: '3' });
        const [bash] = (await anonymous.call(listDocuments, { id: 'bash' })).documents;
        const published = bash?.advisories[0]?.events.map(({ data }) => data);
        assert.deepEqual(
          published?.map((data) => data.case),
          ['falsePositiveDetermination', 'pendingUpstreamFix'],
        );
        assert.partialDeepStrictEqual(published?.[0]?.value, { type: 3, note: 'no' });
      });

      test('documents are filtered by id and by vulnerability', async () => {
        assert.deepEqual(await documents({ id: 'zlib' }), ['zlib CGA-4444']);
        assert.deepEqual(await documents({ id: 'zli' }), []);
        assert.deepEqual(await documents({ id: 'secret' }), []);
        const both = ['openssl CGA-2222 CGA-3333', 'zlib CGA-4444'];
        assert.deepEqual(await documents({ cves: ['cve-1-1'] }), both);
        assert.deepEqual(await documents({ cves: ['CVE-1-1'], orderBy: 'id desc' }), both.toReversed());
        assert.deepEqual(await documents({ cves: ['OLD-1', 'CGA-4444-4444-4444'] }), [
          'bash CGA-6666',
          'zlib CGA-4444',
        ]);
        assert.deepEqual(await documents({ cves: ['CVE-1-1'], id: 'zlib' }), ['zlib CGA-4444']);
        assert.deepEqual(await documents({ cves: ['CVE-1-3'] }), []);
        assert.deepEqual(await documents({ cves: ['CVE-1-2'], id: 'zlib' }), []);
      });

      test('documents are paged in both directions', async () => {
        for (const [request, expected] of [
          [{ orderBy: 'id desc' }, ['zlib', 'openssl', 'curl', 'bash']],
          [{ orderBy: '' }, ['bash', 'curl', 'openssl', 'zlib']],
          [{ cves: ['CVE-1-1', 'CVE-1-2', 'OLD-1'], orderBy: 'id' }, ['bash', 'openssl', 'zlib']],
        ] as const) {
          const seen: string[] = [];
          let pageToken = '';
          do {
            const page = await anonymous.call(listDocuments, {
              ...request,
              pageSize: 1,
              pageToken,
            } as RequestFields<ListDocumentsRequest>);
            assert.equal(page.totalCount, BigInt(expected.length));
            seen.push(...page.documents.map(({ id }) => id));
            pageToken = page.nextPageToken;
          } while (pageToken !== '');
          assert.deepEqual(seen, expected);
          const skipped = await anonymous.call(listDocuments, {
            ...request,
            skip: 2,
          } as RequestFields<ListDocumentsRequest>);
          assert.deepEqual([skipped.skipped, skipped.documents.map(({ id }) => id)], [2, expected.slice(2)]);
          const repeated = { ...request, skip: 1, pageSize: 1 } as RequestFields<ListDocumentsRequest>;
          const { nextPageToken } = await anonymous.call(listDocuments, repeated);
          if (nextPageToken === '') continue;
          const second = await anonymous.call(listDocuments, { ...repeated, pageToken: nextPageToken });
          assert.deepEqual([second.skipped, second.documents.map(({ id }) => id)], [1, expected.slice(2, 3)]);
        }
        const { nextPageToken: pageToken } = await anonymous.call(listDocuments, { pageSize: 1 });
        for (const request of [{ pageToken, id: 'zlib' }, { pageToken, orderBy: 'id desc' }, { pageToken: 'x' }]) {
          assert.deepEqual((await rejects(anonymous.call(listDocuments, request), Code.INVALID_ARGUMENT)).fields, [
            'page_token',
          ]);
        }
        for (const [request, field] of [
          [{ pageSize: -1 }, 'page_size'],
          [{ skip: -1 }, 'skip'],
          [{ orderBy: 'name' }, 'order_by'],
          [{ cves: Array.from({ length: 101 }, (_, i) => `CVE-9-${i}`) }, 'cves'],
        ] as const) {
          const error = await rejects(anonymous.call(listDocuments, request as never), Code.INVALID_ARGUMENT);
          assert.deepEqual(error.fields, [field]);
        }
      });

      test('vulnerability metadata is filtered by id, sorted and paged', async () => {
        assert.deepEqual(await metadataIds(), ['CVE-1-1', 'CVE-1-2', 'GHSA-1']);
        assert.deepEqual(await metadataIds({ orderBy: 'id desc' }), ['GHSA-1', 'CVE-1-2', 'CVE-1-1']);
        assert.deepEqual(await metadataIds({ id: 'cve-1-2' }), ['CVE-1-2']);
        assert.deepEqual(await metadataIds({ ids: ['GHSA-1', 'CVE-1-2', 'GHSA-1', 'CVE-7-7'] }), ['CVE-1-2', 'GHSA-1']);
        assert.deepEqual(await metadataIds({ id: 'GHSA-1', ids: ['GHSA-1', 'CVE-1-2'] }), ['GHSA-1']);
        assert.deepEqual(await metadataIds({ id: 'GHSA-1', ids: ['CVE-1-2'] }), []);
        assert.deepEqual(await metadataIds({ id: 'ghsa-22' }), ['CVE-1-2']);
        assert.deepEqual(await metadataIds({ ids: ['PYSEC-2', 'GHSA-22', 'CVE-1-2', 'GHSA-1'] }), [
          'CVE-1-2',
          'GHSA-1',
        ]);
        assert.deepEqual(await metadataIds({ id: 'GHSA-33' }), [], 'the metadata of others');
        assert.deepEqual(await metadataIds({ id: 'GHSA-33' }, owner), ['CVE-1-3']);
        assert.deepEqual(await metadataIds({ ids: ['CVE-1-3'] }), []);
        assert.deepEqual(await metadataIds({ ids: ['CVE-1-3'] }, owner), ['CVE-1-3']);
        const page = await anonymous.call(listVulnerabilityMetadata, { ids: ['GHSA-1', 'CVE-1-1'], pageSize: 1 });
        assert.deepEqual([page.totalCount, page.vulnerabilityMetadata[0]?.summary], [2n, 'About CVE-1-1']);
        const { nextPageToken: pageToken } = page;
        const next = await anonymous.call(listVulnerabilityMetadata, {
          ids: ['GHSA-1', 'CVE-1-1'],
          pageSize: 1,
          pageToken,
        });
        assert.deepEqual([next.nextPageToken, next.vulnerabilityMetadata[0]?.id], ['', 'GHSA-1']);
        await rejects(anonymous.call(listVulnerabilityMetadata, { pageToken }), Code.INVALID_ARGUMENT);
      });
    }
  });
}
