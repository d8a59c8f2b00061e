import { type ApiError, notFound } from '../base/errors.ts';
import { isUid, rootOf } from '../base/uid.ts';
import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Method } from '../contract/method.ts';
import type { Caller } from '../resource/caller.ts';
import { exists } from '../resource/read.ts';
import { holdsServerWide } from '../resource/require-capabilities.ts';
import type { Reader } from '../store/store.ts';

/** The kinds that can be without a parent: organizations, people and built-in roles. */
const ROOT_KINDS = ['group', 'identity', 'role'];

/**
 * Returns NOT_FOUND for a call of an operator that was denied because the organization of its scope does not exist, and
 * undefined otherwise. Other callers do not learn which organizations exist.
 */
export async function unknownOrganization(
  db: Reader,
  method: Method,
  caller: Caller,
  scope: unknown,
): Promise<ApiError | undefined> {
  if (method.access !== 'scoped' || typeof scope !== 'string' || !isUid(scope)) return undefined;
  if (!holdsServerWide([Capability.CAP_INTERNAL], caller)) return undefined;
  const root = rootOf(scope);
  for (const kind of ROOT_KINDS) if (await exists(db, kind, root)) return undefined;
  return notFound('group', root);
}
