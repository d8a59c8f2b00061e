import { create } from '@bufbuild/protobuf';
import { type ApiError, notFound, quotaExceeded } from '../../../base/errors.ts';
import { canonicalIssuer } from '../../../base/issuer-url.ts';
import { newUid, parentOf, parseUid, ROOT, rootOf } from '../../../base/uid.ts';
import { Capability } from '../../../contract/gen/capabilities/capabilities_pb.js';
import {
  CheckEligibilityResponseSchema,
  type Group,
  GroupsService,
  LookupGroupResponseSchema,
  RequestGroupAccessResponseSchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { AccessRequestSchema } from '../../../contract/gen/wharfinger/access/v1/access_requests_pb.js';
import { type Operations, type ReadContext, readOperation, writeOperation } from '../../../resource/operation.ts';
import { requireParent } from '../../../resource/parent.ts';
import { find, findAll, findByKey, findReferring } from '../../../resource/read.ts';
import { insert, update } from '../../../resource/write.ts';
import { createOrganizationProblem } from '../groups/create-organization.ts';
import { groups } from '../groups/groups.ts';
import { recordMember } from '../groups/members.ts';
import { identities } from '../identities/identities.ts';
import { issuerAndSubject } from '../identities/relationship.ts';
import { identityProviders } from '../identity-providers/identity-providers.ts';
import { bindingsOf } from '../roles/role-bindings.ts';
import { accessRequestKey, accessRequests } from './access-requests.ts';

/** How long a person must wait before requesting access to the same group again. */
const REQUEST_INTERVAL_MS = 24 * 60 * 60 * 1000;

/** The methods for a person without access to a group: find one, request access to it, or create one. */
export const joinGroupOperations: Operations = {
  ...readOperation(GroupsService.method.lookupGroup, async (ctx) => {
    const group = await findJoinableOrganization(ctx);
    // The same message for every reason, so that it does not tell which organizations exist.
    if (!group) throw notFound(groups.kind, 'to join');
    return create(LookupGroupResponseSchema, { group });
  }),

  ...writeOperation(GroupsService.method.requestGroupAccess, {
    async run(ctx, request) {
      const { db, caller, now } = ctx;
      const groupUid = parseUid('group_uid', request.groupUid);
      const isVisible =
        caller.can([Capability.CAP_IAM_GROUPS_LIST], groupUid) ||
        (await findJoinableOrganization(ctx))?.uid === groupUid;
      // The same error as for a group that does not exist, so that it does not tell which groups exist.
      if (!isVisible) throw notFound(groups.kind, groupUid);
      // Locks the group, so that a concurrent call finds the request that this one inserts.
      await find(db.forUpdate, groups, groupUid);
      await requireParent(db.forShare, accessRequests, groupUid);

      recordMember(db, rootOf(groupUid), caller.uid);
      const uid = await findByKey(db, accessRequests, accessRequestKey(groupUid, caller.uid));
      const before = uid === undefined ? undefined : await find(db, accessRequests, uid);
      if (!before) {
        const message = create(AccessRequestSchema, { identityUid: caller.uid });
        await insert(db, accessRequests, { message, uid: newUid(groupUid), parent: groupUid }, now);
      } else {
        if (now - before.updated < REQUEST_INTERVAL_MS)
          throw requestedTooSoon(caller.uid, before.updated + REQUEST_INTERVAL_MS, now);
        await update(db, accessRequests, before, before, now);
      }
      return create(RequestGroupAccessResponseSchema);
    },
  }),

  ...readOperation(GroupsService.method.checkEligibility, ({ caller }) =>
    create(CheckEligibilityResponseSchema, { eligible: createOrganizationProblem(caller) === undefined }),
  ),
};

const requestedTooSoon = (identity: string, allowedAt: number, now: number): ApiError =>
  quotaExceeded(
    `identity:${identity}`,
    `you have requested access already; request it again after ${new Date(allowedAt).toISOString()}`,
    allowedAt - now,
  );

/**
 * The organization that the caller may request access to; the oldest when there are several. The conditions are:
 * - the organization is verified,
 * - it has an identity provider with the issuer of the caller,
 * - the caller has no role binding in it.
 */
async function findJoinableOrganization({
  db,
  caller,
}: Pick<ReadContext, 'db' | 'caller'>): Promise<Group | undefined> {
  const issuer = await issuerOf({ db, caller });
  if (!issuer) return undefined;
  const groupsWithIssuer = (await findReferring(db, identityProviders, 'issuer', issuer)).map(parentOf);
  const joined = new Set((await bindingsOf(db, caller.uid)).map(({ parent }) => rootOf(parent)));
  const candidates = groupsWithIssuer.filter((group) => parentOf(group) === ROOT && !joined.has(group));
  const [oldest] = (await findAll(db, groups, [...new Set(candidates)]))
    .filter(({ message }) => message.verified)
    .sort((a, b) => a.created - b.created);
  return oldest?.message;
}

/**
 * The issuer of the caller's identity; undefined unless the caller is a person. People register with a token of their
 * issuer. The issuer of a machine proves nothing, because the creator of its identity can enter any issuer.
 */
async function issuerOf({ db, caller }: Pick<ReadContext, 'db' | 'caller'>): Promise<string | undefined> {
  const person = parentOf(caller.uid) === ROOT ? await find(db, identities, caller.uid) : undefined;
  return person && canonicalIssuer(issuerAndSubject(person.message.relationship).issuer);
}
