import { clone } from '@bufbuild/protobuf';
import { newUid } from '../../base/uid.ts';
import { ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { requireParent } from '../../resource/parent.ts';
import { find, findByKey } from '../../resource/read.ts';
import { insert, update } from '../../resource/write.ts';
import type { Transaction } from '../../store/store.ts';
import type { PreparedReport } from './prepare-report.ts';
import { contentKey, reports, scanKey, scanTimeOf } from './reports.ts';

const INSERT = `INSERT INTO vulnerability_report
  (uid, repo, digest, scanner, scanned, vulnerabilities, findings, raw) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
const REPLACE = 'UPDATE vulnerability_report SET vulnerabilities = $2, findings = $3, raw = $4 WHERE uid = $1';

export type PutReportResult = 'created' | 'updated' | 'unchanged';

/** Stores a report for an image of a repo. The same report changes nothing; another report of the scan replaces it. */
export async function putReport(
  tx: Transaction,
  repo: string,
  digest: string,
  { message: prepared, columns }: PreparedReport,
  now: number,
): Promise<PutReportResult> {
  // Locked for update, so that two imports of the same report do not store it twice.
  const parent = await requireParent(tx.forUpdate, reports, repo);
  const message = clone(ReportSchema, prepared);
  message.digest = digest;
  if (await findByKey(tx, reports, contentKey(repo, message))) return 'unchanged';

  const { vulnerabilities, findings, raw } = columns;
  const existingUid = await findByKey(tx, reports, scanKey(repo, message));
  const before = existingUid === undefined ? undefined : await find(tx, reports, existingUid);
  if (before) {
    const { uid, createTime } = before.message;
    Object.assign(message, { uid, createTime });
    await update(tx, reports, before, { message, state: before.state }, now);
    await tx.run(REPLACE, before.uid, vulnerabilities, findings, raw);
    return 'updated';
  }
  const { uid } = await insert(tx, reports, { message, uid: newUid(parent), parent }, now);
  const scanner = message.scanner?.name ?? 0;
  await tx.run(INSERT, uid, repo, digest, scanner, scanTimeOf(message), vulnerabilities, findings, raw);
  return 'created';
}
