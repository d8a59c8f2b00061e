import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';
import { mapInSlices, startSlices } from '../../base/slices.ts';
import { isWithin, type Uid } from '../../base/uid.ts';
import {
  type Document,
  DocumentSchema,
  type ListDocumentsRequest,
  ListDocumentsResponseSchema,
  SecurityAdvisoryService,
} from '../../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import {
  type Advisory,
  AdvisorySchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import {
  createFacetReader,
  type FacetReader,
  type FacetValue,
  type ValueWindow,
} from '../../resource/list/facet-reader.ts';
import { pageSize } from '../../resource/list/list.ts';
import { type PageTokens, skipFrom } from '../../resource/list/page-token.ts';
import { compareBytes } from '../../resource/list/plan.ts';
import { type Operations, type ReadContext, readOperation } from '../../resource/operation.ts';
import { findAll, findUidsReferringAny } from '../../resource/read.ts';
import type { Reader } from '../../store/store.ts';
import { advisories } from '../advisories/advisories.ts';
import { idKeysInAnyRole } from '../advisories/advisory-search.ts';
import { toDocumentAdvisory } from './document.ts';
import type { ReadableGroups } from './readable-groups.ts';

const MAX_CVES = 100;
/** A page ends early when it has this many advisories. A single document is always complete. */
const MAX_ADVISORIES = 5_000;

/** Lists one document for each artifact name that has advisories. Documents are not stored: the facet is their list. */
export const documentOperations = (pageTokens: PageTokens, readableGroups: ReadableGroups): Operations =>
  readOperation(SecurityAdvisoryService.method.listDocuments, async (ctx, request) => {
    const isDescending = parseOrder(request.orderBy);
    const { window, skipped, query } = readWindow(ctx, request, isDescending, pageTokens);
    const scopes = readableGroups(ctx.caller);
    const packages = createFacetReader(ctx.db, advisories, 'artifact_names');

    const named = await findNamedPackages(ctx.db, packages, scopes, request);
    const total = named ? named.length : await packages.count(scopes);
    // One more than the page size, which shows whether there is a next page.
    const extended = { ...window, limit: window.limit + 1 };
    const found = named ? pageOf(named, extended) : await packages.values(scopes, extended);
    const page = limitAdvisories(found.slice(0, window.limit));
    const last = page.length < found.length ? page.at(-1) : undefined;
    return create(ListDocumentsResponseSchema, {
      documents: await readDocuments(packages, scopes, page),
      nextPageToken: last ? pageTokens.issue({ keys: [], uid: last.value, skipped }, query, ctx.now) : '',
      totalCount: BigInt(total),
      skipped,
    });
  });

/** Whether the order is descending. */
function parseOrder(text: string): boolean {
  const [, direction = 'asc'] = /^\s*(?:id(?:\s+(asc|desc))?)?\s*$/i.exec(text) ?? ['', 'unknown'];
  if (direction === 'unknown') throw invalid('order_by', 'must be id, optionally followed by asc or desc');
  return direction.toLowerCase() === 'desc';
}

function readWindow(
  { caller, now }: ReadContext,
  { id, cves, pageSize: size, pageToken, skip: requestedSkip }: ListDocumentsRequest,
  isDescending: boolean,
  pageTokens: PageTokens,
): { window: ValueWindow; skipped: number; query: string } {
  const limit = pageSize(size);
  if (cves.length > MAX_CVES) throw invalid('cves', `must have at most ${MAX_CVES} values`);
  const query = JSON.stringify(['documents', id, cves, isDescending, caller.uid]);
  const cursor = pageToken === '' ? undefined : pageTokens.read(pageToken, query, now);
  const { skip, skipped } = skipFrom(cursor, requestedSkip);
  return { window: { after: cursor?.uid, descending: isDescending, limit, skip }, skipped, query };
}

/** The packages that a request names, in any order; undefined when it names none. */
async function findNamedPackages(
  db: Reader,
  packages: FacetReader,
  scopes: readonly Uid[],
  { id, cves }: ListDocumentsRequest,
): Promise<FacetValue[] | undefined> {
  if (cves.length === 0) return id === '' ? undefined : packages.find(scopes, [id]);
  const uids = await findUidsReferringAny(db, advisories, 'ids', cves.flatMap(idKeysInAnyRole));
  const visible = uids.filter((uid) => scopes.some((scope) => isWithin(uid, scope)));
  const affected = (await findAll(db, advisories, visible)).map(({ message }) => message.artifactName);
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

/** The packages of a page up to MAX_ADVISORIES advisories, and at least one package. */
function limitAdvisories(packages: readonly FacetValue[]): FacetValue[] {
  let members = 0;
  return packages.filter((each, at) => {
    members += each.members;
    return at === 0 || members <= MAX_ADVISORIES;
  });
}

/** The times of a document: those of its oldest advisory and of the last change. */
function timesOf(advisories: readonly Advisory[]): Pick<Document, 'createTime' | 'updateTime'> {
  let [created, updated] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { createTime, updateTime } of advisories) {
    if (createTime) created = Math.min(created, timestampMs(createTime));
    if (updateTime) updated = Math.max(updated, timestampMs(updateTime));
  }
  return {
    ...(Number.isFinite(created) && { createTime: timestampFromMs(created) }),
    ...(Number.isFinite(updated) && { updateTime: timestampFromMs(updated) }),
  };
}

async function readDocuments(
  packages: FacetReader,
  scopes: readonly Uid[],
  page: readonly FacetValue[],
): Promise<Document[]> {
  const names = page.map(({ value }) => value);
  const bodies = await packages.members(scopes, names);
  const slices = startSlices();
  const documents: Document[] = [];
  for (const id of names) {
    const all = await mapInSlices(bodies.get(id) ?? [], (body) => fromBinary(AdvisorySchema, body), slices);
    // Withdrawn advisories are left out, because a document cannot mark them.
    const current = all.filter(({ deleteTime }) => deleteTime === undefined);
    const advisories = await mapInSlices(current, toDocumentAdvisory, slices);
    documents.push(
      create(DocumentSchema, {
        ...{ id, uid: id, advisories: advisories.sort((a, b) => (a.id < b.id ? -1 : 1)) },
        ...timesOf(current),
      }),
    );
  }
  return documents;
}
