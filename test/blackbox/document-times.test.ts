import assert from 'node:assert/strict';
import { test } from 'node:test';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  SecurityAdvisoryService,
  VulnerabilityMetadataSchema,
} from '../../src/contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { AdvisoriesService } from '../../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../src/contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { VulnerabilityImportsService } from '../../src/contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { onEveryDatabaseAndWire } from '../support/api-fixture.ts';
import { withStore } from '../support/images.ts';

const { listDocuments, listVulnerabilityMetadata } = SecurityAdvisoryService.method;
const { importVulnerabilities } = VulnerabilityImportsService.method;

onEveryDatabaseAndWire('uid and times of documents and metadata', (fixture) => {
  test('a document has the times of its advisories, and its id as uid', async () => {
    const parent = await fixture.newGroup();
    const artifactName = `package-${fixture.wire}`;
    const advisories = ['c', 'f'].map((letter, at) => {
      const part = letter.repeat(4);
      return { artifactName, advisoryId: `CGA-${part}-${part}-${fixture.wire === 'REST' ? 2 + at : 4 + at}222` };
    });
    for (const advisory of advisories) {
      await fixture.api.call(AdvisoryImportsService.method.importAdvisories, { parent, advisories: [advisory] });
    }
    const { advisories: stored } = await fixture.api.call(AdvisoriesService.method.listAdvisories, {
      artifactNames: [artifactName],
    });
    assert.equal(stored.length, 2);
    const { documents } = await fixture.api.call(listDocuments, { id: artifactName });
    assert.deepEqual(
      documents.map(({ id, uid, createTime, updateTime }) => [id, uid, msOf(createTime), msOf(updateTime)]),
      [
        [
          artifactName,
          artifactName,
          Math.min(...stored.map(({ createTime }) => msOf(createTime))),
          Math.max(...stored.map(({ updateTime }) => msOf(updateTime))),
        ],
      ],
    );
  });

  test('metadata keeps its uid and times when it is imported again', async () => {
    const parent = await fixture.newGroup();
    const id = `GHSA-${fixture.wire}`;
    const started = Date.now();
    const read = async () =>
      (await fixture.api.call(listVulnerabilityMetadata, { id })).vulnerabilityMetadata[0] ?? assert.fail();
    // What only the server sets is ignored.
    const record = { id, summary: 'One', uid: 'ignored', createTime: { seconds: 1n }, updateTime: { seconds: 1n } };
    await fixture.api.call(importVulnerabilities, { parent, vulnerabilities: [record, record] });
    const created = await read();
    assert.ok(created.uid.startsWith(`${parent}/`));
    assert.ok(msOf(created.createTime) >= started - 60_000);
    assert.deepEqual(created.createTime, created.updateTime);
    const { unchanged } = await fixture.api.call(importVulnerabilities, { parent, vulnerabilities: [record] });
    assert.equal(unchanged, 1);
    assert.deepEqual(await read(), created);

    // Release 0.1.0 stored neither uid nor times in the message.
    const body = toBinary(VulnerabilityMetadataSchema, create(VulnerabilityMetadataSchema, { id, summary: 'One' }));
    const UPDATE = 'UPDATE resource SET body = $2 WHERE uid = $1 AND kind = $3';
    await withStore(fixture.server, (store) => store.write((tx) => tx.run(UPDATE, created.uid, body, 'vulnerability')));
    assert.deepEqual(await read(), created);

    await fixture.api.call(importVulnerabilities, { parent, vulnerabilities: [{ id, summary: 'Two' }] });
    const changed = await read();
    assert.deepEqual([changed.uid, changed.summary, changed.createTime], [created.uid, 'Two', created.createTime]);
    assert.ok(msOf(changed.updateTime) > msOf(created.updateTime));
  });
});

const msOf = (time: Parameters<typeof timestampMs>[0] | undefined): number => timestampMs(time ?? assert.fail());
