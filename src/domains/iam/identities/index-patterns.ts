import type { Log } from '../../../base/log.ts';
import { findAll } from '../../../resource/read.ts';
import { getSetting, putSetting } from '../../../store/settings.ts';
import type { Store } from '../../../store/store.ts';
import { identities } from './identities.ts';

/** Records that the identities of this database have been indexed by the hosts of their issuer patterns. */
const INDEXED = 'identities.pattern-hosts';
const PAGE = 500;

const NEXT_PAGE = `SELECT uid FROM resource WHERE kind = $1 AND uid > $2 ORDER BY uid LIMIT ${PAGE}`;
const DROP_FORMER = `DELETE FROM reference WHERE kind = $1 AND field = 'pattern' AND value = '*'`;
const ADD = `INSERT INTO reference (kind, field, value, uid) VALUES ($1, $2, $3, $4)
  ON CONFLICT (kind, field, value, uid) DO NOTHING`;
const FIELDS = ['pattern', 'with_pattern'] as const;

/**
 * Indexes identities of earlier versions by the hosts of their issuer patterns. Such a version stored all of them under
 * one value. Runs once for a database. Identities whose pattern has no literal host stay, but match no token any more.
 */
export async function indexPatterns(store: Store, log: Log): Promise<void> {
  if ((await getSetting(store.reader, INDEXED)) !== undefined) return;
  for (let last = ''; ; ) {
    const rows = await store.reader.all<{ uid: string }>(NEXT_PAGE, identities.kind, last);
    const uids = rows.map(({ uid }) => uid);
    await store.write(async (tx) => {
      for (const { uid, message } of await findAll(tx, identities, uids)) {
        for (const field of FIELDS) {
          for (const value of identities.values[field]?.(message) ?? []) {
            await tx.run(ADD, identities.kind, field, value, uid);
          }
        }
        const { relationship } = message;
        if (relationship.case !== 'claimMatch' || relationship.value.iss.case !== 'issuerPattern') continue;
        if (identities.values.pattern?.(message).size === 0) {
          log.warn(
            { identity: uid, issuerPattern: relationship.value.iss.value },
            'an issuer pattern has no literal host, so its identity matches no token; update the identity',
          );
        }
      }
    });
    if (uids.length < PAGE) break;
    last = uids.at(-1) ?? '';
  }
  await store.write(async (tx) => {
    await tx.run(DROP_FORMER, identities.kind);
    await putSetting(tx, INDEXED, 'yes');
  });
}
