import { Capability } from '../../contract/gen/capabilities/capabilities_pb.js';
import { type Referrer, referrers } from '../../domains/registry/manifests/referrers.ts';
import { listTagNames } from '../../domains/registry/tags/tag-targets.ts';
import type { Reader } from '../../store/store.ts';
import type { Permission } from '../auth/permission.ts';
import { OciError } from '../errors.ts';
import { type Answer, type Call, json } from '../http/call.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest } from '../names.ts';

export interface DiscoveryOptions {
  readonly db: Reader;
  readonly permission: Permission;
}

const LIST_TAGS = [Capability.CAP_TAG_LIST];
const LIST_REFERRERS = [Capability.CAP_REFERRERS_LIST];

const MAX_TAGS = 1000;
const MAX_REFERRERS = 200;
const REFERRERS_AT_ONCE = 10;
/** What clients take at most for a manifest, which this is to them. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;
const INDEX = 'application/vnd.oci.image.index.v1+json';

interface Page {
  readonly manifests: readonly Referrer[];
  /** Where the next page begins; absent on the last one. */
  readonly last?: string;
}

const NONE: Page = { manifests: [] };

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
    const { manifests, last } = repo === undefined ? NONE : await referrersFrom(repo, digest, after, artifactType);
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

  /** Annotations can be as long as a manifest, so a page ends when it is long, and few are read at a time. */
  async function referrersFrom(repo: string, subject: string, after: string, artifactType?: string): Promise<Page> {
    const manifests: Referrer[] = [];
    let bytes = 0;
    for (let last = after; ; ) {
      const query = { after: last, limit: REFERRERS_AT_ONCE, ...(artifactType !== undefined && { artifactType }) };
      const found = await referrers(db, repo, subject, query);
      manifests.push(...found);
      if (found.length < REFERRERS_AT_ONCE) return { manifests };
      last = found.at(-1)?.digest ?? last;
      bytes += JSON.stringify(found).length;
      if (manifests.length >= MAX_REFERRERS || bytes >= MAX_PAGE_BYTES) return { manifests, last };
    }
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
