import { parentOf } from '../../base/uid.ts';
import {
  Ecosystem,
  EcosystemSchema,
  PolicySchema,
  SourceSchema,
} from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { LibraryEntitlementSchema } from '../../contract/gen/wharfinger/libraries/v1/library_entitlements_pb.js';
import { defineResource } from '../../resource/definition.ts';
import * as rules from '../../resource/rules.ts';
import { cooldownDays } from './library-policies.ts';
import { ecosystemAt } from './library-policy-bindings.ts';

/** The entitlement of a group to an ecosystem. Its cooldown applies to imports (block-check.ts). */
export const libraryEntitlements = defineResource({
  kind: 'library entitlement',
  plural: 'library entitlements',
  schema: LibraryEntitlementSchema,
  parents: ['group'],
  rules: {
    ecosystem: rules.enumValue(EcosystemSchema),
    policy: rules.enumValue(PolicySchema),
    source: rules.enumValue(SourceSchema),
    cooldown_days: cooldownDays,
  },
  unique: ({ ecosystem }, group) => [
    { key: ecosystemAt(group, ecosystem), taken: `${group} has an entitlement to ${Ecosystem[ecosystem]} already` },
  ],
  references: { place: ({ uid, ecosystem }) => [ecosystemAt(parentOf(uid), ecosystem)] },
  facets: { ecosystems: ({ ecosystem }) => [String(ecosystem)] },
});
