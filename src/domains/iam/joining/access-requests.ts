import { create } from '@bufbuild/protobuf';
import { RoleBindingIdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import { AccessRequestSchema } from '../../../contract/gen/wharfinger/access/v1/access_requests_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import { findMessagesByUid } from '../../../resource/read.ts';
import { identities } from '../identities/identities.ts';
import { identitySummary } from '../roles/hydrate-bindings.ts';

/** The request of a person to the owners of a group for access to it. RequestGroupAccess creates it (join-group.ts). */
export const accessRequests = defineResource({
  kind: 'access request',
  plural: 'access requests',
  schema: AccessRequestSchema,
  parents: ['group'],
  defaultOrder: 'update_time desc',
  unique: ({ identityUid }, group) => [
    { key: accessRequestKey(group, identityUid), taken: `${identityUid} has requested access to ${group} already` },
  ],

  /** Adds the identity to each request, because owners of a group cannot read the identities of people. */
  async present({ db }, requests) {
    const uids = requests.map(({ identityUid }) => identityUid);
    const identityOf = await findMessagesByUid(db, identities, uids);
    for (const request of requests) {
      const identity = identityOf.get(request.identityUid);
      if (identity) request.identity = create(RoleBindingIdentitySchema, identitySummary(identity));
    }
  },
});

export const accessRequestKey = (group: string, identity: string): string => `${group} ${identity}`;
