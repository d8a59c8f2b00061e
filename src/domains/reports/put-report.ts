import { clone } from '@bufbuild/protobuf';
import { newUid } from '../../base/uid.ts';
import { type Report, ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { requireParent } from '../../resource/parent.ts';
import { find, findByKey } from '../../resource/read.ts';
import { insert, update } from '../../resource/write.ts';
import type { Transaction } from '../../store/store.ts';
import type { PreparedReport } from './prepare.ts';
import { contentKey, reports, scanKey, scanTimeOf } from './reports.ts';

const INSERT = `INSERT INTO vulnerability_report
  (uid, repo, digest, scanner, scanned, vulnerabilities, findings, raw) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`;
const REPLACE = 'UPDATE vulnerability_report SET vulnerabilities = $2, findings = $3, raw = $4 WHERE uid = $1';

export type PutResult = 'created' | 'updated' | 'unchanged';

/** Files a report under an image of a repo. The same report again changes nothing; another copy of the same scan replaces it. */
export async function putReport(
  tx: Transaction,
  repo: string,
  digest: string,
  { message: prepared, columns }: PreparedReport,
  now: number,
): Promise<PutResult> {
  // Held alone, so that the same report from two sides does not come in twice.
  await requireParent(tx.forUpdate, reports, repo);
  const message = clone(ReportSchema, prepared);
  message.digest = digest;
  if (await findByKey(tx, reports, contentKey(repo, message))) return 'unchanged';

  const { vulnerabilities, findings, raw } = columns;
  const known = await findByKey(tx, reports, scanKey(repo, message));
  const before = known === undefined ? undefined : await find(tx, reports, known);
  if (before) {
    const { uid, createTime } = before.message as Report;
    Object.assign(message, { uid, createTime });
    await update(tx, reports, before, { message, state: before.state }, now);
    await tx.run(REPLACE, before.uid, vulnerabilities, findings, raw);
    return 'updated';
  }
  const { uid } = await insert(tx, reports, { message, uid: newUid(repo), parent: repo }, now);
  const scanner = message.scanner?.name ?? 0;
  await tx.run(INSERT, uid, repo, digest, scanner, scanTimeOf(message), vulnerabilities, findings, raw);
  return 'created';
}
