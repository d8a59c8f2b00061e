import { create } from '@bufbuild/protobuf';
import { invalid } from '../../../base/errors.ts';
import { isUid } from '../../../base/uid.ts';
import {
  type Identity,
  type Identity_StaticKeys,
  IdentitySchema,
} from '../../../contract/gen/chainguard/platform/iam/v2/identities_pb.js';
import type { WriteContext } from '../../../resource/operation.ts';
import { createResource } from '../../../resource/standard-methods.ts';
import { refuse } from '../../../resource/validate.ts';
import { requireAt, requireSomewhere } from '../access/unscoped.ts';
import { identities } from './identities.ts';
import { staticKeysProblems } from './static-keys.ts';

/**
 * Creates an identity that fixed keys prove, for callers who say no more than the keys: it is named after the subject.
 * `group` may be left out by those who create identities in one place only.
 */
export async function createKeyedIdentity(
  ctx: WriteContext,
  group: string,
  keys: Identity_StaticKeys,
): Promise<Identity> {
  const place = group === '' ? onlyPlaceOf(ctx) : requirePlace(ctx, group);
  // The keys are all there is to say, so that complaints name their fields alone.
  refuse(staticKeysProblems(keys, ctx.now).map((one) => ({ ...one, field: one.field.replace('static_keys.', '') })));
  const name = keys.subject
    .toLowerCase()
    .replaceAll(/[^a-z0-9 ._-]+/g, '-')
    .slice(0, MAX_NAME);
  const identity = create(IdentitySchema, { name, relationship: { case: 'staticKeys', value: keys } });
  return (await createResource(ctx, identities, identity, place)) as Identity;
}

const MAX_NAME = 63;

function onlyPlaceOf(ctx: WriteContext): string {
  const [place = '', another] = requireSomewhere(ctx);
  if (another !== undefined) throw invalid('parent', 'is required, since there are several groups to choose from');
  return place;
}

function requirePlace(ctx: WriteContext, group: string): string {
  if (!isUid(group)) throw invalid('parent', 'must be the uid of a group');
  requireAt(ctx, group);
  return group;
}
