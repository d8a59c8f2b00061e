import {
  type Identity_StaticKeys,
  Identity_StaticKeysSchema,
} from '../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import { Identities, IdentitySchema } from '../../contract/gen/platform/events/v1/identities.platform_pb.js';
import { createKeyedIdentity } from '../../domains/iam/identities/static-key-identity.ts';
import type { Operations } from '../../resource/operation.ts';
import { vocabulary } from '../message-mapper.ts';
import { writeOnly } from '../v1-only.ts';

/** v1 has a second way to an identity: its keys and nothing else. `id` is first the group, then the identity. */
const keys = vocabulary(IdentitySchema, Identity_StaticKeysSchema, {
  names: { expiration: 'expiration_time' },
  onlyV1: ['id'],
  onlyV2: ['audiences'],
});

const fields = { parent: 'id', expiration_time: 'expiration' };

export const keyedIdentityOperations: Operations = writeOnly(Identities.method.create, fields, async (ctx, given) => {
  const { uid, relationship } = await createKeyedIdentity(ctx, given.id, keys.toV2(given));
  return Object.assign(keys.toV1(relationship.value as Identity_StaticKeys), { id: uid });
});
