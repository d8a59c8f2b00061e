import type { MaybePromise } from '../base/maybe-promise.ts';
import type { ParentUid, Uid } from '../base/uid.ts';
import type { CapabilitySet } from '../contract/capabilities.ts';
import type { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import type { Reader } from '../store/store.ts';

/** What decides the access of a caller besides the role bindings of its identity. */
export interface CallerLogin {
  /** The identity provider of the login, and the groups of the user there that are mapped to roles. */
  readonly provider?: { readonly uid: string; readonly groups: readonly string[] } | undefined;
  /** The groups and the capabilities that the token is restricted to. */
  readonly scopes?: readonly Uid[] | undefined;
  readonly capabilities?: CapabilitySet | undefined;
}

/** The documents that a person must accept in organizations before anything else (WHARF_REQUIRED_TERMS). */
export interface CallerTerms {
  /** All required documents, by the uid of the organization. The person can accept these without a capability. */
  readonly required: ReadonlyMap<string, readonly string[]>;
  /** Those that the person has not accepted. It has no grants in these organizations. */
  readonly missing: ReadonlyMap<string, readonly string[]>;
  /** Where people can read the documents, by id. */
  readonly urls: ReadonlyMap<string, string>;
  /** The caller with its grants in all organizations, for the methods that need no acceptance. */
  readonly beforeAcceptance: Caller;
  /** Whether the person may accept any document for the organization, because its roles have terms.accept. */
  canAcceptAny(organization: string): boolean;
}

/** The identity that makes a call, and what it may do where. */
export interface Caller {
  /** The uid of the identity; empty for an anonymous caller. */
  readonly uid: string;
  /** What events say about who acted. */
  readonly actor: { readonly subject: string; readonly act?: Readonly<Record<string, string>> } | undefined;
  /** Whether the token is restricted to some groups or capabilities. */
  readonly isRestricted: boolean;
  /** Undefined if the role bindings of the identity alone decide. */
  readonly login: CallerLogin | undefined;
  /** Present if documents are required of the caller. Absent on servers without such a setting. */
  readonly terms?: CallerTerms | undefined;
  /** Whether the caller holds all of `capabilities` at `uid` or at one of its ancestors. No caller holds any at ROOT. */
  can(capabilities: readonly Capability[], uid: ParentUid): boolean;
  /** The part of `wanted` that the caller does not hold at `uid`. Callers can only grant what they hold. */
  lacks(wanted: CapabilitySet, uid: ParentUid): CapabilitySet;
  /** The outermost groups at which the caller holds all of `capabilities`, sorted. */
  reach(capabilities: readonly Capability[]): readonly Uid[];
  /**
   * Reads the access of the caller again through `db`. Returns this same caller if it has not changed. Throws
   * UNAUTHENTICATED if the login has ended. A request may be sent slowly, so what its caller may do is checked again in
   * the transaction that writes.
   */
  current(db: Reader): MaybePromise<Caller>;
  /**
   * Present when the token matches identities of several organizations, so that the request decides which of them calls.
   * `addressed` has the roots of the uids that the request names. Throws UNAUTHENTICATED if the request does not tell.
   * The caller itself can do nothing.
   */
  readonly forRequest?: (addressed: readonly string[]) => Promise<Caller>;
}
