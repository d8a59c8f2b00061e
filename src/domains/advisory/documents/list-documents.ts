import { create, fromBinary } from '@bufbuild/protobuf';
import { invalid } from '../../../base/errors.ts';
import { isWithin } from '../../../base/uid.ts';
import {
  type Document,
  DocumentSchema,
  type ListDocumentsRequest,
  ListDocumentsResponseSchema,
} from '../../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  type Advisory,
  AdvisorySchema,
} from '../../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import {
  createFacetReader,
  type FacetReader,
  type FacetValue,
  type ValueWindow,
} from '../../../resource/list/facet-reader.ts';
import { pageSize } from '../../../resource/list/list.ts';
import type { PageTokens } from '../../../resource/list/page-token.ts';
import { compareBytes } from '../../../resource/list/plan.ts';
import type { Operation, ReadContext } from '../../../resource/operation.ts';
import { findAll, findUidsReferringAny } from '../../../resource/read.ts';
import type { Reader } from '../../../store/store.ts';
import { advisories } from '../../vulnerabilities/advisories.ts';
import { anyIdAs } from '../../vulnerabilities/search.ts';
import type { ReadableGroups } from '../readable-groups.ts';
import { documentAdvisory } from './document.ts';

const MAX_CVES = 100;
/** A page ends early rather than hold more advisories; one document is never cut. */
const MAX_ADVISORIES = 5_000;

/** One document for each artifact that has advisories. It is not stored: the lists of that facet are the documents. */
export const listDocuments = (tokens: PageTokens, readable: ReadableGroups): Operation => ({
  mode: 'read',
  async run(ctx, message) {
    const request = message as ListDocumentsRequest;
    const descending = readOrder(request.orderBy);
    const { window, query } = readWindow(ctx, request, descending, tokens);
    const scopes = readable(ctx.caller);
    const packages = createFacetReader(ctx.db, advisories, 'artifact_names');

    const named = await namedPackages(ctx.db, packages, scopes, request);
    const total = named ? named.length : await packages.count(scopes);
    // One more than asked for tells whether there is a next page.
    const more = { ...window, limit: window.limit + 1 };
    const found = named ? pageOf(named, more) : await packages.values(scopes, more);
    const page = fitting(found.slice(0, window.limit));
    const last = page.length < found.length ? page.at(-1) : undefined;
    return create(ListDocumentsResponseSchema, {
      documents: await documentsOf(packages, scopes, page),
      nextPageToken: last ? tokens.issue({ keys: [], uid: last.value }, query, ctx.now) : '',
      totalCount: BigInt(total),
      skipped: request.skip,
    });
  },
});

function readOrder(text: string): boolean {
  const [, direction = 'asc'] = /^\s*(?:id(?:\s+(asc|desc))?)?\s*$/i.exec(text) ?? ['', 'unknown'];
  if (direction === 'unknown') throw invalid('order_by', 'must be id, optionally followed by asc or desc');
  return direction.toLowerCase() === 'desc';
}

function readWindow(
  { caller, now }: ReadContext,
  { id, cves, pageSize: size, pageToken, skip }: ListDocumentsRequest,
  descending: boolean,
  tokens: PageTokens,
): { window: ValueWindow; query: string } {
  const limit = pageSize(size);
  if (skip < 0) throw invalid('skip', 'must not be negative');
  if (cves.length > MAX_CVES) throw invalid('cves', `must have at most ${MAX_CVES} values`);
  const query = JSON.stringify(['documents', id, cves, descending, caller.uid]);
  const after = pageToken === '' ? undefined : tokens.read(pageToken, query, now)?.uid;
  return { window: { after, descending, limit, skip }, query };
}

/** The packages that a request names, in any order; nothing when it asks for all. */
async function namedPackages(
  db: Reader,
  packages: FacetReader,
  scopes: readonly string[],
  { id, cves }: ListDocumentsRequest,
): Promise<FacetValue[] | undefined> {
  if (cves.length === 0) return id === '' ? undefined : packages.find(scopes, [id]);
  const uids = await findUidsReferringAny(db, advisories, 'ids', cves.flatMap(anyIdAs));
  const visible = uids.filter((uid) => scopes.some((scope) => isWithin(uid, scope)));
  const affected = (await findAll(db, advisories, visible)).map(({ message }) => (message as Advisory).artifactName);
  return packages.find(
    scopes,
    [...new Set(affected)].filter((name) => id === '' || name === id),
  );
}

function pageOf(packages: readonly FacetValue[], { after, descending, limit, skip }: ValueWindow): FacetValue[] {
  const sign = descending ? -1 : 1;
  return packages
    .filter(({ value }) => after === undefined || sign * compareBytes(value, after) > 0)
    .sort((a, b) => sign * compareBytes(a.value, b.value))
    .slice(skip, skip + limit);
}

function fitting(packages: readonly FacetValue[]): FacetValue[] {
  let members = 0;
  return packages.filter((each, at) => {
    members += each.members;
    return at === 0 || members <= MAX_ADVISORIES;
  });
}

async function documentsOf(
  packages: FacetReader,
  scopes: readonly string[],
  page: readonly FacetValue[],
): Promise<Document[]> {
  const names = page.map(({ value }) => value);
  const bodies = await packages.members(scopes, names);
  return names.map((id) => {
    const found = (bodies.get(id) ?? []).map((body) => fromBinary(AdvisorySchema, body));
    // What was withdrawn no longer stands, and a document cannot say so.
    const standing = found.filter(({ deleteTime }) => deleteTime === undefined).map(documentAdvisory);
    return create(DocumentSchema, { id, advisories: standing.sort((a, b) => (a.id < b.id ? -1 : 1)) });
  });
}
