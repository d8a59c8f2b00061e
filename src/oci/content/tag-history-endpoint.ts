import { parseTimestamp } from '../../contract/json/well-known.ts';
import { RegistryError } from '../../domains/registry/errors.ts';
import { findLastImages, type HistoryPeriod } from '../../domains/registry/tags/tag-history.ts';
import type { RepositoryAccess } from '../auth/repository-access.ts';
import { OciError } from '../errors.ts';
import { json, type OciCall, type OciResponse } from '../http/call.ts';
import type { RouteOf } from '../http/routes.ts';
import { requireTag } from '../names.ts';

const MAX_RECORDS = 1000;

/** Creates the endpoint that lists the images that a tag pointed to. */
export function createTagHistoryEndpoint(access: RepositoryAccess) {
  return async (call: OciCall, { name, tag: text }: RouteOf<'tag history'>): Promise<OciResponse> => {
    const tag = requireTag(text);
    const repo = await access.require(call, name, 'pull');
    const images = await findLastImages(call.db, repo, tag, periodIn(call.query), MAX_RECORDS);
    if (!images) throw new RegistryError('MANIFEST_UNKNOWN', `${name} has no tag ${tag} and never had one`);
    const history = images
      .reverse()
      .map(({ digest, changed }) => ({ updateTimestamp: new Date(changed).toISOString(), digest }));
    return json(200, { history });
  };
}

function periodIn(query: URLSearchParams): HistoryPeriod {
  // Moves are recorded in milliseconds.
  const from = timeIn(query, 'start', Math.ceil);
  const to = timeIn(query, 'end', Math.floor);
  if (from !== undefined && to !== undefined && from > to) throw invalid('start must not be later than end');
  return { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
}

function timeIn(query: URLSearchParams, parameter: 'start' | 'end', round: (ms: number) => number): number | undefined {
  const text = query.get(parameter);
  if (text === null || text === '') return undefined;
  // The plus sign of an offset that the client has not escaped arrives as a space.
  const parsed = parseTimestamp(text.replace(/ (?=\d\d:\d\d$)/, '+'));
  if (!parsed) throw invalid(`${parameter} must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z`);
  return Number(parsed.seconds) * 1000 + round(parsed.nanos / 1_000_000);
}

const invalid = (message: string): OciError => new OciError('UNSUPPORTED', message, { status: 400 });
