import { precondition } from '../../base/errors.ts';
import { LibraryPolicyType } from '../../contract/gen/platform/libraries/v1/policy_gates.libraries.platform_pb.js';
import { LibraryPolicySchema } from '../../contract/gen/wharfinger/libraries/v1/library_policies_pb.js';
import { parsePurl } from '../../formats/packages/purl.ts';
import { defineResource } from '../../resource/definition.ts';
import { findReferring } from '../../resource/read.ts';
import * as rules from '../../resource/rules.ts';
import { libraryPolicyBindings } from './library-policy-bindings.ts';

const MAX_ENTRIES = 1000;
const MAX_PURL = 512;
const MAX_COOLDOWN_DAYS = 3650;

export const cooldownDays = rules.range(0, MAX_COOLDOWN_DAYS);

/** An entry that names no package would block nothing, so it is refused. */
const purlEntries = rules.list<{ purl: string }>(MAX_ENTRIES, ({ purl }) =>
  purl.length <= MAX_PURL && parsePurl(purl)
    ? undefined
    : `must have a package URL, such as pkg:npm/left-pad@1.3.0, not ${JSON.stringify(purl.slice(0, MAX_PURL))}`,
);

/** Says which package versions imports refuse. It takes effect where it is bound (block-check.ts). */
export const libraryPolicies = defineResource({
  kind: 'library policy',
  plural: 'library policies',
  schema: LibraryPolicySchema,
  parents: ['group'],
  rules: {
    name: rules.line(128),
    description: rules.text(1024),
    cooldown_days: cooldownDays,
    block_list: purlEntries,
    allow_list: purlEntries,
    blocked_licenses: rules.list(100, rules.line(128)),
  },
  orders: { name: ({ name }) => name },
  facets: { policy_type: ({ policyType }) => [String(policyType)] },
  beforeCreate(_ctx, policy) {
    policy.policyType = LibraryPolicyType.CUSTOM;
    return undefined;
  },
  async beforeDelete({ db }, { uid }) {
    const [binding] = await findReferring(db, libraryPolicyBindings, 'policy', uid);
    if (binding)
      throw precondition('RESOURCE_IN_USE', uid, 'cannot delete library policy with library policy bindings');
  },
});
