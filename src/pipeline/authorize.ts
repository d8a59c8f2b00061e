import type { Message } from '@bufbuild/protobuf';
import { type ApiError, denied, invalid } from '../base/errors.ts';
import { parseUid, type Uid } from '../base/uid.ts';
import type { Method } from '../contract/method.ts';
import { builtinRole } from '../domains/iam/roles/builtin-roles.ts';
import type { Caller } from '../resource/caller.ts';
import { missingCapabilities, requireServerWide } from '../resource/require-capabilities.ts';

/**
 * Checks the capabilities of a scoped method at its scope, and those of a method for the whole server. Other methods are
 * not checked here: a List is restricted to the reach of the caller by the engine, and the contract says what other
 * unscoped methods check (`handler_check`).
 */
export function authorize(method: Method, caller: Caller, request: Message): void {
  if (method.unrestrictedToken && caller.isRestricted) {
    throw denied('a token that is restricted by scopes or capabilities cannot be used for this; send another one');
  }
  if (method.access === 'scoped') {
    const uid = scopeOf(method, request);
    if (!caller.can(method.capabilities, uid))
      throw unchangeableRole(uid) ?? missingCapabilities(method.capabilities, uid);
  }
  if (method.access === 'server') requireServerWide(method.capabilities, caller);
}

/** Built-in roles have no parent at which a caller could hold a capability, so a role binding would not help. */
function unchangeableRole(uid: Uid): ApiError | undefined {
  const role = builtinRole(uid);
  return (
    role && denied(`${role.name} is a built-in role, which no caller can change or delete; create a role of your own`)
  );
}

function scopeOf(method: Method, request: Message): Uid {
  const at = scopeFieldOf(method, request);
  const name = method.scope.at(-1) ?? 'uid';
  if (typeof at !== 'string' || at === '') throw invalid(name, 'is required');
  return parseUid(name, at);
}

/** The value of the field that the contract declares as the scope of a method. */
export function scopeFieldOf(method: Method, request: Message): unknown {
  let at: unknown = request;
  let desc = method.desc.input;
  for (const name of method.scope) {
    const field = desc.fields.find((f) => f.name === name);
    at = field && (at as Record<string, unknown> | undefined)?.[field.localName];
    if (field?.message) desc = field.message;
  }
  return at;
}
