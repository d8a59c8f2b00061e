import { create } from '@bufbuild/protobuf';
import type { Identity } from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
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
import { flattened } from '../roles/hydrate-bindings.ts';

/** Somebody asks the owners of a group for access to it (find-and-request.ts). */
export const accessRequests = defineResource({
  kind: 'access request',
  plural: 'access requests',
  schema: AccessRequestSchema,
  parents: ['group'],
  defaultOrder: 'update_time desc',
  unique: ({ identityUid }, group) => [
    { key: requestKey(group, identityUid), taken: `${identityUid} has asked for access to ${group} already` },
  ],

  /** Owners cannot read the identities of people, so a request says who asks. */
  async present({ db }, requests) {
    const found = await findAll(db, identities, [...new Set(requests.map(({ identityUid }) => identityUid))]);
    const identityOf = new Map(found.map(({ uid, message }) => [uid, message as Identity]));
    for (const request of requests) {
      const identity = identityOf.get(request.identityUid);
      if (identity) request.identity = create(RoleBindingIdentitySchema, flattened(identity));
    }
  },
});

export const requestKey = (group: string, identity: string): string => `${group} ${identity}`;

export const accessRequestOperations = (engine: Engine): Operations =>
  standardOperations(engine, accessRequests, AccessRequestsService);
