import { Identity_StaticKeysSchema } from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { Identities, IdentitySchema } from '../../contract/gen/platform/events/v1/identities.platform_pb.js';
import { createStaticKeyIdentity } from '../../domains/iam/identities/create-static-key-identity.ts';
import type { Operations } from '../../resource/operation.ts';
import { createMessageMapper } from '../message-mapper.ts';
import { v1WriteOperation } from '../v1-write-operation.ts';

/**
 * A second v1 method creates an identity from nothing but its static keys. `id` is the group in the request and the
 * identity in the response.
 */
const keysMapper = createMessageMapper(IdentitySchema, Identity_StaticKeysSchema, {
  renames: { expiration: 'expiration_time' },
  onlyV1: ['id'],
  onlyV2: ['audiences'],
});

const v1FieldNames = { parent: 'id', expiration_time: 'expiration' };

export const staticKeyIdentityOperations: Operations = v1WriteOperation(
  Identities.method.create,
  v1FieldNames,
  async (ctx, request) => {
    const { uid, relationship } = await createStaticKeyIdentity(ctx, request.id, keysMapper.toV2(request));
    if (relationship.case !== 'staticKeys') throw new Error(`${uid} was created without static keys`);
    return Object.assign(keysMapper.toV1(relationship.value), { id: uid });
  },
);
