import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import { databases, temporaryStore } from '../../../test/support/databases.ts';
import { newUid, ROOT } from '../../base/uid.ts';
import { ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { listReportsOfDigest, listReportsOfRepo, readFindings } from './report-rows.ts';

const INSERT = `INSERT INTO vulnerability_report
  (uid, repo, digest, scanner, scanned, vulnerabilities, findings, raw) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;

for (const database of databases) {
  describe(`rows of reports on ${database.name}`, () => {
    test('the limit counts only reports that match the filter', async (t) => {
      const store = await temporaryStore(database);
      t.after(() => store.close());
      const group = newUid(ROOT);
      const repo = newUid(group);
      const nothing = Buffer.alloc(0);
      await store.write(async (tx) => {
        // The five oldest reports are by scanner 1, and all others by scanner 2.
        for (let time = 1; time <= 60; time++) {
          await tx.run(INSERT, newUid(repo), repo, 'sha256:a', time > 5 ? 2 : 1, time, '[]', nothing, nothing);
        }
      });
      const { reader } = store;
      const times = (rows: readonly { scanned: number }[]): number[] => rows.map(({ scanned }) => scanned);
      assert.deepEqual(times(await listReportsOfRepo(reader, repo, { scanner: 1 }, 10)), [5, 4, 3, 2, 1]);
      assert.deepEqual(times(await listReportsOfRepo(reader, repo, { since: 2, until: 3 }, 10)), [3, 2]);
      assert.deepEqual(times(await listReportsOfRepo(reader, repo, {}, 3)), [60, 59, 58]);
      const ofDigest = (filter: object) => listReportsOfDigest(reader, 'sha256:a', [group], filter, 10);
      assert.deepEqual(times(await ofDigest({ scanner: 1, until: 4 })), [4, 3, 2, 1]);
      assert.deepEqual(await ofDigest({ since: 61 }), []);
    });

    test('findings are read until there are too many', async (t) => {
      const store = await temporaryStore(database);
      t.after(() => store.close());
      const repo = newUid(newUid(ROOT));
      const uids = Array.from({ length: 4 }, () => newUid(repo));
      const findings = gzipSync(
        toBinary(ReportSchema, create(ReportSchema, { findings: Array(3).fill({ id: 'CVE-1' }) })),
      );
      await store.write(async (tx) => {
        for (const uid of uids) await tx.run(INSERT, uid, repo, 'sha256:a', 1, 1, '[]', findings, findings);
      });
      const all = await readFindings(store.reader, uids);
      assert.deepEqual([all.count, all.byReport.size], [12, 4]);
      const some = await readFindings(store.reader, uids, 5);
      assert.deepEqual([some.count, some.byReport.size], [6, 2]);
    });
  });
}
