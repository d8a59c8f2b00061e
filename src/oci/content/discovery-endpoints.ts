import { findReferrers, type Referrer } from '../../domains/registry/manifests/referrers.ts';
import { listTagNames } from '../../domains/registry/tags/tag-targets.ts';
import type { Reader } from '../../store/store.ts';
import type { RepositoryAccess } from '../auth/repository-access.ts';
import { OciError } from '../errors.ts';
import { json, type OciCall, type OciResponse } from '../http/call.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireDigest } from '../names.ts';

const MAX_TAGS = 1000;
const MAX_REFERRERS = 200;
const REFERRERS_AT_ONCE = 10;
/** Clients parse this list as a manifest, and this is the largest manifest that they accept. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;
const INDEX = 'application/vnd.oci.image.index.v1+json';

interface Page {
  readonly manifests: readonly Referrer[];
  /** The last digest of this page; absent on the last page. */
  readonly last?: string;
}

const EMPTY: Page = { manifests: [] };

export function createDiscoveryEndpoints(access: RepositoryAccess) {
  async function tags(call: OciCall, { name }: RouteOf<'tags'>): Promise<OciResponse> {
    const limit = pageSize(call.query.get('n'));
    const after = call.query.get('last') ?? '';
    const repo = await access.require(call, name, 'pull');
    if (limit === 0) return json(200, { name, tags: [] });
    // One more than requested shows whether there is a next page.
    const found = await listTagNames(call.db, repo, { after, limit: limit + 1 });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return json(
      200,
      { name, tags: page },
      last === undefined ? {} : { link: nextPage(`${name}/tags/list`, { n: limit, last }) },
    );
  }

  /** To clients a 404 means that the registry does not support referrers, so an unknown digest gets an empty list. */
  async function listReferrers(call: OciCall, { name, digest: text }: RouteOf<'referrers'>): Promise<OciResponse> {
    const digest = requireDigest(text);
    const artifactType = call.query.get('artifactType') || undefined;
    const repo = await access.find(call, name, 'pull');
    const after = call.query.get('last') ?? '';
    const { manifests, last } =
      repo === undefined ? EMPTY : await referrersFrom(call.db, repo, digest, after, artifactType);
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

  /** Annotations can be as long as a manifest, so the size of a page is limited too, and few are read at a time. */
  async function referrersFrom(
    db: Reader,
    repo: string,
    subject: string,
    after: string,
    artifactType?: string,
  ): Promise<Page> {
    const manifests: Referrer[] = [];
    let bytes = 0;
    for (let last = after; ; ) {
      const query = { after: last, limit: REFERRERS_AT_ONCE, ...(artifactType !== undefined && { artifactType }) };
      const found = await findReferrers(db, repo, subject, query);
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
  if (!/^\d{1,9}$/.test(text)) throw new OciError('UNSUPPORTED', 'n must be a whole number', { status: 400 });
  return Math.min(Number(text), MAX_TAGS);
}

/** RFC 8288. */
function nextPage(path: string, parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = Object.entries(parameters).flatMap(([key, value]) =>
    value === undefined ? [] : `${key}=${encodeURIComponent(value)}`,
  );
  return `</v2/${path}?${query.join('&')}>; rel="next"`;
}
