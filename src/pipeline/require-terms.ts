import type { Message } from '@bufbuild/protobuf';
import { termsNotAccepted } from '../base/errors.ts';
import type { Method } from '../contract/method.ts';
import type { Caller, CallerTerms } from '../resource/caller.ts';
import { addressedBy } from './addressed.ts';

/**
 * Refuses a call in an organization whose documents the caller has not accepted, and returns the caller that the call
 * runs as. A caller has no grants in such an organization, except for the methods that the contract exempts
 * (`before_terms`). A List that names no organization omits it, unless the caller has no other.
 */
export function requireTerms(method: Method, caller: Caller, terms: CallerTerms, request: Message): Caller {
  const { missing, beforeAcceptance } = terms;
  if (method.beforeTerms) return beforeAcceptance;
  if (missing.size === 0) return caller;
  const addressed = addressedBy(method, request).find((organization) => missing.has(organization));
  if (addressed !== undefined) throw refusal(method, terms, addressed);
  const { access, capabilities } = method;
  if (access === 'unscoped' && capabilities.length > 0 && caller.reach(capabilities).length === 0) {
    const [first] = missing.keys();
    if (first !== undefined && beforeAcceptance.reach(capabilities).length > 0) throw refusal(method, terms, first);
  }
  return caller;
}

const refusal = (method: Method, { missing, urls }: CallerTerms, organization: string) =>
  termsNotAccepted(organization, missing.get(organization) ?? [], urls, method.isV1 ? 'v1' : 'v2');
