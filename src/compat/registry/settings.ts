import { create } from '@bufbuild/protobuf';
import { Registry, RegistrySettingsSchema } from '../../contract/gen/platform/registry/v1/registry.platform_pb.js';
import { getRegistrySettings, putRegistrySettings } from '../../domains/registry/repos/registry-settings.ts';
import { type Operations, readOperation, writeOperation } from '../../resource/operation.ts';

export const settingsOperations: Operations = {
  ...readOperation(Registry.method.getRegistrySettings, async (ctx, { registryId }) =>
    create(RegistrySettingsSchema, { registryId, ...(await getRegistrySettings(ctx, registryId)) }),
  ),
  ...writeOperation(Registry.method.updateRegistrySettings, {
    async run(ctx, { registryId, uniqueTags, eolGracePeriod }) {
      await putRegistrySettings(ctx, registryId, { uniqueTags, eolGracePeriod });
      return create(RegistrySettingsSchema, { registryId, uniqueTags, eolGracePeriod });
    },
  }),
};
