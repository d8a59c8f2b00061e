import { invalid } from '../../base/errors.ts';
import { isUid, isWithin, parentOf } from '../../base/uid.ts';
import {
  type Ecosystem,
  EcosystemSchema,
} from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { LibraryPolicyBindingModeSchema } from '../../contract/gen/platform/libraries/v1/policy_gates.libraries.platform_pb.js';
import { LibraryPolicyBindingSchema } from '../../contract/gen/wharfinger/libraries/v1/library_policy_bindings_pb.js';
import { defineResource } from '../../resource/definition.ts';
import type { WriteContext } from '../../resource/operation.ts';
import { exists } from '../../resource/read.ts';
import * as rules from '../../resource/rules.ts';

/** Makes a library policy apply to imports of an ecosystem into a group and its descendants. */
export const libraryPolicyBindings = defineResource({
  kind: 'library policy binding',
  plural: 'library policy bindings',
  schema: LibraryPolicyBindingSchema,
  parents: ['group'],
  rules: { ecosystem: rules.enumValue(EcosystemSchema), mode: rules.enumValue(LibraryPolicyBindingModeSchema) },
  unique: ({ policyUid, ecosystem }, group) => [
    {
      key: `${ecosystemAt(group, ecosystem)} ${policyUid}`,
      taken: 'the policy is bound to this ecosystem here already',
    },
  ],
  references: {
    policy: ({ policyUid }) => [policyUid],
    place: ({ uid, ecosystem }) => [ecosystemAt(parentOf(uid), ecosystem)],
  },
  facets: { ecosystem: ({ ecosystem }) => [String(ecosystem)], mode: ({ mode }) => [String(mode)] },
  async beforeCreate(ctx, { policyUid }, { parent }) {
    await requireBindable(ctx, policyUid, parent);
    return undefined;
  },
  async beforeUpdate(ctx, { parent }, { policyUid }) {
    await requireBindable(ctx, policyUid, parent);
    return undefined;
  },
});

/** An ecosystem of a group, as the value of a reference. */
export const ecosystemAt = (group: string, ecosystem: Ecosystem): string => `${group} ${ecosystem}`;

/** Refuses a policy of another part of the resource tree, whether or not it exists. */
async function requireBindable({ db }: WriteContext, policy: string, group: string): Promise<void> {
  const isAbove = isUid(policy) && isWithin(group, parentOf(policy));
  if (!isAbove || !(await exists(db.forShare, 'library policy', policy))) {
    throw invalid('policy_uid', `must be the uid of a library policy of ${group} or of a group above it`);
  }
}
