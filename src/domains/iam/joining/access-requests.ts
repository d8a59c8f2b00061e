import { create } from '@bufbuild/protobuf';
import { RoleBindingIdentitySchema } from '../../../contract/gen/chainguard/platform/iam/v2/role_bindings_pb.js';
import {
  AccessRequestSchema,
  AccessRequestsService,
} from '../../../contract/gen/wharfinger/access/v1/access_requests_pb.js';
import { defineResource } from '../../../resource/definition.ts';
import type { Engine } from '../../../resource/engine.ts';
import type { Operations } from '../../../resource/operation.ts';
import { findAll } from '../../../resource/read.ts';
import { standardOperations } from '../../../resource/standard-methods.ts';
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
    const found = await findAll(db, identities, [...new Set(requests.map(({ identityUid }) => identityUid))]);
    const identityOf = new Map(found.map(({ uid, message }) => [uid, message]));
    for (const request of requests) {
      const identity = identityOf.get(request.identityUid);
      if (identity) request.identity = create(RoleBindingIdentitySchema, identitySummary(identity));
    }
  },
});

export const accessRequestKey = (group: string, identity: string): string => `${group} ${identity}`;

export const accessRequestOperations = (engine: Engine): Operations =>
  standardOperations(engine, accessRequests, AccessRequestsService);
