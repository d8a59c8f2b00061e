import type { Access } from '../access/access.ts';
import { createCaller, type Grant } from '../access/caller.ts';
import { narrow } from '../access/narrow.ts';
import type { Clock } from '../base/clock.ts';
import { NO_CAPABILITIES } from '../contract/capabilities.ts';
import { mappedGrants } from '../domains/iam/external-group-role-mappings.ts';
import { capabilitiesOf } from '../domains/iam/roles.ts';
import type { Caller } from '../resource/context.ts';
import type { Reader } from '../store/store.ts';
import { type Provider, requireStanding } from './standing.ts';
import type { Tokens } from './tokens.ts';

export interface OwnCallerOptions {
  readonly db: Reader;
  readonly tokens: Pick<Tokens, 'verify'>;
  readonly access: Access;
  readonly clock: Clock;
}

/** Answers who sent a token of ours, and what it leaves them of what they may do; nothing for a token of somebody else. */
export function authenticateOwn({ db, tokens, access, clock }: OwnCallerOptions) {
  return async (token: string): Promise<Caller | undefined> => {
    const own = await tokens.verify(token);
    if (own === undefined) return undefined;
    await requireStanding(db, own, clock());
    const { identity, act, provider } = own;
    const actor = { subject: identity, ...(act && { act: { ...act } }) };
    const grants = [...(await access.grants(identity)), ...(provider ? await grantsThrough(db, provider) : [])];
    return createCaller(identity, actor, narrow(grants, own));
  };
}

/** What the groups of a person at an identity provider are worth here, as of now. */
async function grantsThrough(db: Reader, { uid, groups }: Provider): Promise<Grant[]> {
  const grants: Grant[] = [];
  for (const { group, roleUid } of await mappedGrants(db, uid, groups)) {
    grants.push({ group, capabilities: (await capabilitiesOf(db, roleUid)) ?? NO_CAPABILITIES });
  }
  return grants;
}
