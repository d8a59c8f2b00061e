import type { Message } from '@bufbuild/protobuf';
import { type ApiError, denied, invalid } from '../base/errors.ts';
import { isUid } from '../base/uid.ts';
import { capabilityName } from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Method } from '../contract/method.ts';
import type { Caller } from '../resource/caller.ts';

/** Checks the capabilities of a method at its scope. An unscoped method restricts what it reads to the caller's reach. */
export function authorize(method: Method, caller: Caller, request: Message): void {
  if (method.access === 'scoped') requireCapabilities(method.capabilities, caller, scopeOf(method, request));
}

/** Refuses a caller who lacks any of `capabilities` at `uid`. `name` is what the message calls the resource. */
export function requireCapabilities(
  capabilities: readonly Capability[],
  caller: Caller,
  uid: string,
  name: string = uid,
): void {
  if (!caller.can(capabilities, uid)) throw missingCapabilities(capabilities, name);
}

/** The same error whether or not the resource exists. */
export function missingCapabilities(capabilities: readonly Capability[], name: string): ApiError {
  const names = capabilities.map(capabilityName).join(', ');
  return denied(`needs ${names} on ${name}; ask an owner for a role binding there or above`, {
    capabilities: names,
    scope: name,
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
