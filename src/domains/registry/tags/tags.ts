import { rootOf } from '../../../base/uid.ts';
import { toDigest } from '../../../blobs/digest.ts';
import { type Tag, TagSchema } from '../../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { defineResource, type Rule, type State } from '../../../resource/definition.ts';
import { bundleProblems } from '../repos/labels.ts';
import { tagName } from '../repos/names.ts';

export const digestRule: Rule<string> = (value) =>
  toDigest(value) ? undefined : 'must be sha256: and 64, or sha512: and 128 lower-case hexadecimal digits';

/** Under such tags, older clients keep signatures and attestations of the image with that digest. */
const REFERRER = /^sha256-/;
/** `-20260801`, optionally with the time of day. */
const DATE = /-(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:\d{4}|\d{6})?$/;
/** The epoch of a package: how often it was built anew at the same version. */
const EPOCH = /-r\d+$/;

/**
 * A name for an image of a repo. What a tag is and how tags are listed; where they point is kept in tag-targets.ts, since
 * pulls must not wait for more than that.
 */
export const tags = defineResource({
  kind: 'tag',
  plural: 'tags',
  schema: TagSchema,
  parents: ['repo'],
  rules: { name: tagName, digest: digestRule },
  check: ({ bundles }) => bundleProblems(bundles),
  orders: { name: (tag) => tag.name },
  references: { digest: (tag) => [tag.digest] },
  // Few are, and lists of just those are asked for (v1 ListEolTags).
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

/** Beside a tag that has reached its end of life: since when. */
export function deprecation({ deprecated }: Pick<Tag, 'deprecated'>, now: number, before?: State): State | undefined {
  return deprecated ? { deprecated: deprecatedSince(before) ?? now } : undefined;
}

export const deprecatedSince = (state: State | undefined): number | undefined =>
  typeof state?.deprecated === 'number' ? state.deprecated : undefined;
