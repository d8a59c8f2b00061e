import { rootOf } from '../../../base/uid.ts';
import { toDigest } from '../../../blobs/digest.ts';
import { type Tag, TagSchema } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { defineResource, type Rule, type State } from '../../../resource/definition.ts';
import { bundleProblems } from '../repos/bundle-rules.ts';
import { tagNameRule } from '../repos/name-rules.ts';

export const digestRule: Rule<string> = (value) =>
  toDigest(value) ? undefined : 'must be sha256: and 64, or sha512: and 128 lower-case hexadecimal digits';

/** Older clients store signatures and attestations of the image with that digest under such tags. */
const REFERRER = /^sha256-/;
/** `-20260801`, optionally followed by the time of day. */
const DATE = /-(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?$/;
/** The epoch of a package: the number of rebuilds of the same version. */
const EPOCH = /-r\d+$/;

/**
 * A name for an image of a repo. The digests that tags point to are also in a table of their own (tag-targets.ts), the
 * only one that a pull reads.
 */
export const tags = defineResource({
  kind: 'tag',
  plural: 'tags',
  schema: TagSchema,
  parents: ['repo'],
  rules: { name: tagNameRule, digest: digestRule },
  check: ({ bundles }) => bundleProblems(bundles),
  orders: { name: (tag) => tag.name },
  references: { digest: (tag) => [tag.digest] },
  // Servers of release 0.1 list deprecated tags with it. No longer read.
  facets: { deprecated: (tag) => (tag.deprecated ? ['true'] : []) },
  facetOrders: ['uid'],
  hidden: {
    include_referrers: (tag) => REFERRER.test(tag.name),
    include_dates: (tag) => DATE.test(tag.name),
    include_epochs: (tag) => EPOCH.test(tag.name),
  },
  since: { updated_since: 'update_time' },
  event: (_change, { uid }) => ({ group: rootOf(uid) }),
});

/** The private state of a tag: when it was deprecated. A tag that stays deprecated keeps the first time. */
export function deprecationState(
  { deprecated }: Pick<Tag, 'deprecated'>,
  now: number,
  before?: State,
): State | undefined {
  return deprecated ? { deprecated: deprecatedSince(before) ?? now } : undefined;
}

export const deprecatedSince = (state: State | undefined): number | undefined =>
  typeof state?.deprecated === 'number' ? state.deprecated : undefined;
