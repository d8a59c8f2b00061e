import {
  IdentityProviderSchema,
  IdentityProvidersService,
} from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import {
  IdentityProviders,
  IdentityProviderSchema as V1IdentityProviderSchema,
} from '../../contract/gen/platform/iam/v1/identity_providers.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt, sameBut } from '../adapt.ts';
import { listAll, within } from '../list-all.ts';
import { vocabulary } from '../message-mapper.ts';

const words = vocabulary(V1IdentityProviderSchema, IdentityProviderSchema, {
  names: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const fields = { uid: 'id', parent: 'parent_id' };

export const identityProviderOperations = (operations: Operations): Operations => ({
  ...adapt(operations, IdentityProviders.method.create, IdentityProvidersService.method.createIdentityProvider, {
    request: ({ parentId, identityProvider }) => ({
      parent: parentId,
      identityProvider: words.toV2(identityProvider),
    }),
    response: words.toV1,
    fields,
  }),
  ...adapt(operations, IdentityProviders.method.update, IdentityProvidersService.method.updateIdentityProvider, {
    request: (provider) => ({ identityProvider: words.toV2(provider), updateMask: words.replaced }),
    response: words.toV1,
    fields,
  }),
  ...listAll(operations, IdentityProviders.method.list, IdentityProvidersService.method.listIdentityProviders, {
    request: ({ uidp, id, name }) => ({ uidp: within(uidp, id), name }),
    response: ({ identityProviders }) => identityProviders.map(words.toV1),
  }),
  ...adapt(operations, IdentityProviders.method.delete, IdentityProvidersService.method.deleteIdentityProvider, {
    request: ({ id }) => ({ uid: id }),
    fields,
  }),
  ...scimTokenOperations(operations),
});

function scimTokenOperations(operations: Operations): Operations {
  const { generateScimToken, regenerateScimToken, revokeScimToken, setScimEnabled } = IdentityProviders.method;
  const v2 = IdentityProvidersService.method;
  const names = { identity_provider_id: 'identity_provider_uid' };
  return {
    ...adapt(
      operations,
      generateScimToken,
      v2.generateScimToken,
      sameBut(generateScimToken, v2.generateScimToken, names),
    ),
    ...adapt(
      operations,
      regenerateScimToken,
      v2.regenerateScimToken,
      sameBut(regenerateScimToken, v2.regenerateScimToken, names),
    ),
    ...adapt(operations, revokeScimToken, v2.revokeScimToken, sameBut(revokeScimToken, v2.revokeScimToken, names)),
    ...adapt(operations, setScimEnabled, v2.setScimEnabled, sameBut(setScimEnabled, v2.setScimEnabled, names)),
  };
}
