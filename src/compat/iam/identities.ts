import { IdentitiesService, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  Identities,
  IdentitySchema as V1IdentitySchema,
} from '../../contract/gen/platform/iam/v1/identity.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';

const words = vocabulary(V1IdentitySchema, IdentitySchema, {
  names: {
    id: 'uid',
    created_at: 'create_time',
    updated_at: 'update_time',
    last_seen: 'last_seen_time',
    static: 'static_keys',
    expiration: 'expiration_time',
  },
  onlyV2: ['email', 'email_unverified', 'company'],
});

const fields = { uid: 'id', parent: 'parent_id', static_keys: 'static', expiration_time: 'expiration' };

export const identityOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Identities.method.create, IdentitiesService.method.createIdentity, {
    request: ({ parentId, identity }) => ({ parent: parentId, identity: words.toV2(identity) }),
    response: words.toV1,
    fields,
  }),
  ...adapt(operations, Identities.method.update, IdentitiesService.method.updateIdentity, {
    request: (identity) => ({ identity: words.toV2(identity), updateMask: words.replaced }),
    response: words.toV1,
    fields,
  }),
  ...listAll(operations, Identities.method.list, IdentitiesService.method.listIdentities, {
    request: ({ uidp, id }) => ({ uidp: within(uidp, id) }),
    response: ({ identities }) => identities.map(words.toV1),
  }),
  ...adapt(operations, Identities.method.lookup, IdentitiesService.method.lookupIdentity, {
    request: ({ issuer, subject }) => ({ issuer, subject }),
    response: ({ uid }) => ({ id: uid }),
  }),
  ...adapt(operations, Identities.method.delete, IdentitiesService.method.deleteIdentity, {
    request: ({ id }) => ({ uid: id }),
    fields,
  }),
});
