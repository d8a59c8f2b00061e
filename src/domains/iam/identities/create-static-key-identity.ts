import { create } from '@bufbuild/protobuf';
import { invalid } from '../../../base/errors.ts';
import { isUid } from '../../../base/uid.ts';
import {
  type Identity,
  type Identity_StaticKeys,
  IdentitySchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { WriteContext } from '../../../resource/operation.ts';
import { requireCapabilities, requireReach } from '../../../resource/require-capabilities.ts';
import { createResource } from '../../../resource/standard-methods.ts';
import { refuse } from '../../../resource/validate.ts';
import { identities } from './identities.ts';
import { staticKeysProblems } from './static-keys-rules.ts';

const MAX_NAME = 63;

/**
 * Creates an identity with static keys, named after its subject. `group` may be empty when the caller can create
 * identities in one group only.
 */
export async function createStaticKeyIdentity(
  ctx: WriteContext,
  group: string,
  keys: Identity_StaticKeys,
): Promise<Identity> {
  const parent = group === '' ? onlyGroupOf(ctx) : requireGroup(ctx, group);
  // The request has the keys at the top level, so violations name their fields without a prefix.
  refuse(
    staticKeysProblems(keys, ctx.now).map(({ field, description }) => ({
      field: field.replace('static_keys.', ''),
      description,
    })),
  );
  const name = keys.subject
    .toLowerCase()
    .replaceAll(/[^a-z0-9 ._-]+/g, '-')
    .slice(0, MAX_NAME);
  const identity = create(IdentitySchema, { name, relationship: { case: 'staticKeys', value: keys } });
  return createResource(ctx, identities, identity, parent);
}

function onlyGroupOf(ctx: WriteContext): string {
  const [group = '', another] = requireReach(ctx.method.capabilities, ctx.caller);
  if (another !== undefined)
    throw invalid('parent', 'is required, because you can create identities in several groups');
  return group;
}

function requireGroup(ctx: WriteContext, group: string): string {
  if (!isUid(group)) throw invalid('parent', 'must be the uid of a group');
  requireCapabilities(ctx.method.capabilities, ctx.caller, group);
  return group;
}
