import { Capability } from '../contract/gen/capabilities/capabilities_pb.js';
import { referrers } from '../domains/registry/referrers.ts';
import { listTagNames } from '../domains/registry/tag-targets.ts';
import type { Reader } from '../store/store.ts';
import { type Answer, type Call, json } from './call.ts';
import { OciError } from './errors.ts';
import { requireDigest } from './names.ts';
import type { Permission } from './permission.ts';
import type { RouteOf } from './routes.ts';

export interface DiscoveryOptions {
  readonly db: Reader;
  readonly permission: Permission;
}

const LIST_TAGS = [Capability.CAP_TAG_LIST];
const LIST_REFERRERS = [Capability.CAP_REFERRERS_LIST];

const MAX_TAGS = 1000;
const MAX_REFERRERS = 200;
const INDEX = 'application/vnd.oci.image.index.v1+json';

export function createDiscovery({ db, permission }: DiscoveryOptions) {
  async function tags(call: Call, { name }: RouteOf<'tags'>): Promise<Answer> {
    const limit = pageSize(call.query.get('n'));
    const after = call.query.get('last') ?? '';
    const repo = await permission.require(call, name, 'pull', LIST_TAGS);
    if (limit === 0) return json(200, { name, tags: [] });
    // One more than asked for tells whether there is a next page.
    const found = await listTagNames(db, repo, { after, limit: limit + 1 });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return json(
      200,
      { name, tags: page },
      last === undefined ? {} : { link: nextPage(`${name}/tags/list`, { n: limit, last }) },
    );
  }

  /** Clients take a 404 for a registry without this list, so what does not exist has no referrers. */
  async function listReferrers(call: Call, { name, digest: text }: RouteOf<'referrers'>): Promise<Answer> {
    const digest = requireDigest(text);
    const artifactType = call.query.get('artifactType') || undefined;
    const repo = await permission.allow(call, name, 'pull', LIST_REFERRERS);
    const after = call.query.get('last') ?? '';
    const query = { after, limit: MAX_REFERRERS + 1, ...(artifactType !== undefined && { artifactType }) };
    const found = repo === undefined ? [] : await referrers(db, repo, digest, query);
    const manifests = found.slice(0, MAX_REFERRERS);
    const last = found.length > MAX_REFERRERS ? manifests.at(-1)?.digest : undefined;
    return json(
      200,
      { schemaVersion: 2, mediaType: INDEX, manifests },
      {
        'content-type': INDEX,
        ...(artifactType !== undefined && { 'oci-filters-applied': 'artifactType' }),
        ...(last !== undefined && { link: nextPage(`${name}/referrers/${digest}`, { artifactType, last }) }),
      },
    );
  }

  return { tags, referrers: listReferrers };
}

function pageSize(text: string | null): number {
  if (text === null || text === '') return MAX_TAGS;
  if (!/^\d{1,9}$/.test(text)) throw new OciError('UNSUPPORTED', 'n must be a number of tags', { status: 400 });
  return Math.min(Number(text), MAX_TAGS);
}

/** RFC 8288. */
function nextPage(path: string, parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = Object.entries(parameters).flatMap(([key, value]) =>
    value === undefined ? [] : `${key}=${encodeURIComponent(value)}`,
  );
  return `</v2/${path}?${query.join('&')}>; rel="next"`;
}
