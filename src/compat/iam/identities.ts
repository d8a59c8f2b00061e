import { IdentitiesService, IdentitySchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import {
  Identities,
  IdentitySchema as V1IdentitySchema,
} from '../../contract/gen/platform/iam/v1/identity.platform_pb.js';
import { ServerIdentitiesService } from '../../contract/gen/wharfinger/iam/v1/server_identities_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { convertEventBodies, createEventBodyConverter } from '../event-body.ts';
import { createMessageMapper } from '../message-mapper.ts';

const identityMapper = createMessageMapper(V1IdentitySchema, IdentitySchema, {
  renames: {
    id: 'uid',
    created_at: 'create_time',
    updated_at: 'update_time',
    last_seen: 'last_seen_time',
    static: 'static_keys',
    expiration: 'expiration_time',
  },
  onlyV2: ['email', 'email_unverified', 'company'],
});

const v1FieldNames = { uid: 'id', parent: 'parent_id', static_keys: 'static', expiration_time: 'expiration' };

const { deleteServerIdentity } = ServerIdentitiesService.method;
/** The event of a deletion has the request, so no response is converted. */
const convertDeletion = createEventBodyConverter(Identities.method.delete, deleteServerIdentity, (request) => request);

export const identityOperations = (operations: Operations): Operations => ({
  ...adapt(operations, Identities.method.create, IdentitiesService.method.createIdentity, {
    request: ({ parentId, identity }) => ({ parent: parentId, identity: identityMapper.toV2(identity) }),
    response: identityMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, Identities.method.update, IdentitiesService.method.updateIdentity, {
    request: (identity) => ({ identity: identityMapper.toV2(identity), updateMask: identityMapper.fullUpdateMask }),
    response: identityMapper.toV1,
    v1FieldNames,
  }),
  ...adaptList(operations, Identities.method.list, IdentitiesService.method.listIdentities, {
    request: ({ uidp, id }) => ({ uidp: uidpFilterOf(uidp, id) }),
    response: ({ identities }) => identities.map(identityMapper.toV1),
  }),
  ...adapt(operations, Identities.method.lookup, IdentitiesService.method.lookupIdentity, {
    request: ({ issuer, subject }) => ({ issuer, subject }),
    response: ({ uid }) => ({ id: uid }),
  }),
  ...convertEventBodies(operations, deleteServerIdentity, convertDeletion),
  ...adapt(operations, Identities.method.delete, IdentitiesService.method.deleteIdentity, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
});
