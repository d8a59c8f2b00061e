import type { MaybePromise } from '../../base/maybe-promise.ts';
import { type ParentUid, parseUid } from '../../base/uid.ts';
import { decodeCapabilitySet, encodeCapabilitySet, NO_CAPABILITIES } from '../../contract/capabilities.ts';
import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import type { Caller, CallerLogin } from '../../resource/caller.ts';

/** The identity on whose access a subscription depends, with what else decided its access when it made the subscription. */
export interface Maker extends CallerLogin {
  readonly identity: string;
  /** When it made the subscription or took it over, in milliseconds. */
  readonly since: number;
}

/** Returns the caller that a maker, as stored, would be now. Undefined if the maker cannot log in any more. */
export type MakerAccess = (maker: string) => MaybePromise<Caller | undefined>;

/** Encodes the caller as the maker of a subscription, for the database. */
export function encodeMaker({ uid, login }: Caller, now: number): string {
  const { provider, scopes, capabilities } = login ?? {};
  return JSON.stringify({
    identity: uid,
    since: now,
    ...(provider && { provider: { uid: provider.uid, groups: provider.groups } }),
    ...(scopes && { scopes }),
    ...(capabilities !== undefined && { capabilities: encodeCapabilitySet(capabilities) }),
  });
}

export function decodeMaker(stored: string): Maker {
  const { capabilities, scopes, ...maker } = JSON.parse(stored) as Omit<Maker, 'capabilities'> & {
    capabilities?: string;
  };
  return {
    ...maker,
    scopes: scopes?.map((scope) => parseUid('scopes', scope)),
    capabilities: capabilities === undefined ? undefined : (decodeCapabilitySet(capabilities) ?? NO_CAPABILITIES),
  };
}

const CREATE = [Capability.CAP_EVENTS_SUBSCRIPTION_CREATE];

/** Returns why a subscription of a group is paused and what to do; undefined if its maker has access. */
export function pauseReason(maker: Maker, caller: Caller | undefined, group: ParentUid): string | undefined {
  const problem = caller
    ? 'does not have subscriptions.create there any more'
    : 'was deleted or cannot log in any more';
  if (caller?.can(CREATE, group)) return undefined;
  return `its maker ${maker.identity} ${problem}; restore that access, or check the sink and take it over`;
}
