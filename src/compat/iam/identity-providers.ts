import {
  IdentityProviderSchema,
  IdentityProvidersService,
} from '../../contract/gen/chainguard/platform/iam/v2/identity_providers_pb.js';
import {
  IdentityProviders,
  IdentityProviderSchema as V1IdentityProviderSchema,
} from '../../contract/gen/platform/iam/v1/identity_providers.platform_pb.js';
import type { Operations } from '../../resource/operation.ts';
import { adapt, adaptByRenames } from '../adapt.ts';
import { adaptList, uidpFilterOf } from '../adapt-list.ts';
import { createMessageMapper } from '../message-mapper.ts';

const providerMapper = createMessageMapper(V1IdentityProviderSchema, IdentityProviderSchema, {
  renames: { id: 'uid' },
  onlyV2: ['create_time', 'update_time'],
});

const v1FieldNames = { uid: 'id', parent: 'parent_id' };

export const identityProviderOperations = (operations: Operations): Operations => ({
  ...adapt(operations, IdentityProviders.method.create, IdentityProvidersService.method.createIdentityProvider, {
    request: ({ parentId, identityProvider }) => ({
      parent: parentId,
      identityProvider: providerMapper.toV2(identityProvider),
    }),
    response: providerMapper.toV1,
    v1FieldNames,
  }),
  ...adapt(operations, IdentityProviders.method.update, IdentityProvidersService.method.updateIdentityProvider, {
    request: (provider) => ({
      identityProvider: providerMapper.toV2(provider),
      updateMask: providerMapper.fullUpdateMask,
    }),
    response: providerMapper.toV1,
    v1FieldNames,
  }),
  ...adaptList(operations, IdentityProviders.method.list, IdentityProvidersService.method.listIdentityProviders, {
    request: ({ uidp, id, name }) => ({ uidp: uidpFilterOf(uidp, id), name }),
    response: ({ identityProviders }) => identityProviders.map(providerMapper.toV1),
  }),
  ...adapt(operations, IdentityProviders.method.delete, IdentityProvidersService.method.deleteIdentityProvider, {
    request: ({ id }) => ({ uid: id }),
    v1FieldNames,
  }),
  ...scimTokenOperations(operations),
});

function scimTokenOperations(operations: Operations): Operations {
  const { generateScimToken, regenerateScimToken, revokeScimToken, setScimEnabled } = IdentityProviders.method;
  const v2 = IdentityProvidersService.method;
  const renames = { identity_provider_id: 'identity_provider_uid' };
  return {
    ...adaptByRenames(operations, generateScimToken, v2.generateScimToken, renames),
    ...adaptByRenames(operations, regenerateScimToken, v2.regenerateScimToken, renames),
    ...adaptByRenames(operations, revokeScimToken, v2.revokeScimToken, renames),
    ...adaptByRenames(operations, setScimEnabled, v2.setScimEnabled, renames),
  };
}
