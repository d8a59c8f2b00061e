import { create } from '@bufbuild/protobuf';
import { ApiError, Code, invalid, notFound } from '../../../base/errors.ts';
import { canonicalIssuer } from '../../../base/issuer-url.ts';
import { isUid, newUid, parentOf, ROOT, rootOf } from '../../../base/uid.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  CheckEligibilityResponseSchema,
  type Group,
  GroupsService,
  LookupGroupResponseSchema,
  type RequestGroupAccessRequest,
  RequestGroupAccessResponseSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import type { Identity } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { AccessRequestSchema } from '../../../contract/gen/wharfinger/access/v1/access_requests_pb.js';
import type { Operation, Operations, ReadContext } from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find, findAll, findByKey, findReferring } from '../../../resource/read.ts';
import { insert, update } from '../../../resource/write.ts';
import { foundingProblem, groups } from '../groups/groups.ts';
import { identities } from '../identities/identities.ts';
import { issuerAndSubject } from '../identities/relationship.ts';
import { identityProviders } from '../identity-providers/identity-providers.ts';
import { bindingsOf } from '../roles/role-bindings.ts';
import { accessRequests, requestKey } from './access-requests.ts';

/** Owners are asked by the same person once a day at most. */
const AGAIN_AFTER_MS = 24 * 60 * 60 * 1000;

const lookUp: Operation = {
  mode: 'read',
  async run(ctx) {
    const group = await joinable(ctx);
    // In the same words whatever the reason, so that a refusal tells nothing about who is here.
    if (!group) throw notFound(groups.kind, 'to join');
    return create(LookupGroupResponseSchema, { group });
  },
};

const ask: Operation = {
  mode: 'write',
  async run(ctx, request) {
    const { db, caller, now } = ctx;
    const { groupUid } = request as RequestGroupAccessRequest;
    if (!isUid(groupUid)) throw invalid('group_uid', 'must be a uid: 40 hex digits, then /-separated parts of 16');
    const isKnown = caller.can([Capability.CAP_IAM_GROUPS_LIST], groupUid) || (await joinable(ctx))?.uid === groupUid;
    // As if it did not exist: what the caller may not know of is not confirmed.
    if (!isKnown) throw notFound(groups.kind, groupUid);
    // Held alone, so that of two requests at once the second finds the first.
    await find(db.forUpdate, groups, groupUid);
    await requireParent(db.forShare, accessRequests, groupUid);

    const uid = await findByKey(db, accessRequests, requestKey(groupUid, caller.uid));
    const before = uid === undefined ? undefined : await find(db, accessRequests, uid);
    if (!before) {
      const message = create(AccessRequestSchema, { identityUid: caller.uid });
      await insert(db, accessRequests, { message, uid: newUid(groupUid), parent: groupUid }, now);
    } else {
      if (now - before.updated < AGAIN_AFTER_MS) throw tooSoon(before.updated + AGAIN_AFTER_MS);
      await update(db, accessRequests, before, before, now);
    }
    return create(RequestGroupAccessResponseSchema);
  },
};

const tooSoon = (until: number): ApiError =>
  new ApiError(
    Code.RESOURCE_EXHAUSTED,
    `Resource exhausted: you have asked for access already; you may ask again from ${new Date(until).toISOString()}`,
  );

const checkFounding: Operation = {
  mode: 'read',
  run: ({ caller }) => create(CheckEligibilityResponseSchema, { eligible: foundingProblem(caller) === undefined }),
};

const { lookupGroup, requestGroupAccess, checkEligibility } = GroupsService.method;

/** How somebody without access comes to a group. */
export const joiningOperations: Operations = {
  [`${GroupsService.typeName}/${lookupGroup.name}`]: lookUp,
  [`${GroupsService.typeName}/${requestGroupAccess.name}`]: ask,
  [`${GroupsService.typeName}/${checkEligibility.name}`]: checkFounding,
};

/**
 * The organization that the caller may ask to join: verified, with an identity provider of its own that is the
 * caller's issuer, and new to the caller. The oldest, where there are several. Machines inside a group join nothing.
 */
async function joinable({ db, caller }: Pick<ReadContext, 'db' | 'caller'>): Promise<Group | undefined> {
  const issuer = await issuerOf({ db, caller });
  if (!issuer) return undefined;
  const holders = (await findReferring(db, identityProviders, 'issuer', issuer)).map(parentOf);
  const joined = new Set((await bindingsOf(db, caller.uid)).map(({ parent }) => rootOf(parent)));
  const candidates = holders.filter((holder) => parentOf(holder) === ROOT && !joined.has(holder));
  const [oldest] = (await findAll(db, groups, [...new Set(candidates)]))
    .filter(({ message }) => (message as Group).verified)
    .sort((a, b) => a.created - b.created);
  return oldest?.message as Group | undefined;
}

/**
 * Who vouches for the caller. Only for people: they registered with a token of that issuer, whereas the issuer of a
 * machine is what whoever made its identity wrote there.
 */
async function issuerOf({ db, caller }: Pick<ReadContext, 'db' | 'caller'>): Promise<string | undefined> {
  const person = parentOf(caller.uid) === ROOT ? await find(db, identities, caller.uid) : undefined;
  return person && canonicalIssuer(issuerAndSubject((person.message as Identity).relationship).issuer);
}
