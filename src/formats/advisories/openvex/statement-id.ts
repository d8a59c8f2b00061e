import type { JsonObject } from '../../lenient-json.ts';
import { malformed, requireObject } from '../../strict-json.ts';

/**
 * The schema of OpenVEX does not allow additional fields, but a statement may have an id. Exported statements carry the
 * extension in the fragment of their id, after the `#`.
 */
const PREFIX = 'urn:x-wharfinger:';

export function statementId(advisoryId: string, index: number, extension: JsonObject | undefined): string {
  const id = `${PREFIX}${advisoryId}:${index}`;
  return extension === undefined ? id : `${id}#${Buffer.from(JSON.stringify(extension)).toString('base64url')}`;
}

/** The extension in the id of an exported statement. */
export function extensionInId(id: string, field: string): JsonObject | undefined {
  const hash = id.startsWith(PREFIX) ? id.indexOf('#') : -1;
  if (hash < 0) return undefined;
  try {
    return requireObject(JSON.parse(Buffer.from(id.slice(hash + 1), 'base64url').toString()), field);
  } catch {
    throw malformed(field, 'must be an id that an export of this server wrote');
  }
}
