import type { Message } from '@bufbuild/protobuf';
import { denied, invalid } from '../base/errors.ts';
import { isUid } from '../base/uid.ts';
import { nameOf } from '../contract/capabilities.ts';
import type { Method } from '../contract/method.ts';
import type { Caller } from '../resource/caller.ts';

/** Checks the method's capabilities at the uid in its scope field. Unscoped methods narrow what they read instead. */
export function authorize(method: Method, caller: Caller, request: Message): void {
  if (method.access !== 'scoped') return;
  const uid = scopeOf(method, request);
  if (caller.can(method.capabilities, uid)) return;
  throw missingCapabilities(method, uid);
}

/** The same answer whether or not the resource exists. */
export function missingCapabilities(method: Pick<Method, 'capabilities'>, uid: string) {
  const names = method.capabilities.map(nameOf).join(', ');
  return denied(`needs ${names} on ${uid}; ask an owner for a role binding there or above`, {
    capabilities: names,
    scope: uid,
  });
}

function scopeOf(method: Method, request: Message): string {
  let at: unknown = request;
  let desc = method.desc.input;
  for (const name of method.scope) {
    const field = desc.fields.find((f) => f.name === name);
    at = field && (at as Record<string, unknown> | undefined)?.[field.localName];
    if (field?.message) desc = field.message;
  }
  const name = method.scope.at(-1) ?? 'uid';
  if (typeof at !== 'string' || at === '') throw invalid(name, 'is required');
  if (!isUid(at)) throw invalid(name, 'must be a uid: 40 hex digits, then /-separated parts of 16');
  return at;
}
