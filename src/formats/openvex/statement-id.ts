import { damaged, type Fields, fieldsOf } from '../reading.ts';

/**
 * The schema of OpenVEX allows no fields of others, but a statement may have a name of its own. Ours carry what the
 * format has no place for behind the `#`, which nobody else looks at.
 */
const PREFIX = 'urn:x-wharfinger:';

export const statementId = (advisoryId: string, at: number, rest: Fields | undefined): string =>
  `${PREFIX}${advisoryId}:${at}${rest === undefined ? '' : `#${Buffer.from(JSON.stringify(rest)).toString('base64url')}`}`;

/** What a name of ours carries. */
export function readRest(id: string, field: string): Fields | undefined {
  const cut = id.startsWith(PREFIX) ? id.indexOf('#') : -1;
  if (cut < 0) return undefined;
  try {
    return fieldsOf(JSON.parse(Buffer.from(id.slice(cut + 1), 'base64url').toString()), field);
  } catch {
    throw damaged(field, 'must be what an export wrote');
  }
}
