import { create } from '@bufbuild/protobuf';
import { invalid, notFound } from '../../base/errors.ts';
import { isUid, isWithin } from '../../base/uid.ts';
import {
  ArtifactsService,
  type Ecosystem,
  GetArtifactCountRequestSchema,
  GetArtifactCountResponseSchema,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { Engine } from '../../resource/engine.ts';
import { countMatching } from '../../resource/list/count-matching.ts';
import { createFilterReader } from '../../resource/list/request-filters.ts';
import { type Operations, type ReadContext, readOf, readOperation } from '../../resource/operation.ts';
import { exists, findReferring } from '../../resource/read.ts';
import { requireListReach } from '../../resource/require-capabilities.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { artifactVersions } from './artifact-versions.ts';
import { artifacts } from './artifacts.ts';

const { listArtifactVersions, getArtifactCount } = ArtifactsService.method;

export function artifactOperations(engine: Engine): Operations {
  const versionOperations = standardOperations(engine, artifactVersions, ArtifactsService);
  const listVersions = readOf(versionOperations, listArtifactVersions);
  return {
    ...standardOperations(engine, artifacts, ArtifactsService),
    ...readOperation(listArtifactVersions, async (ctx, request) =>
      listVersions(ctx, { ...request, artifactId: await resolveArtifact(ctx, request.artifactId) }),
    ),
    ...countArtifacts,
  };
}

/**
 * The uid of an artifact within the caller's reach. The id is one segment of the route, where a uid needs its slashes
 * escaped as %2F. So the last part of a uid is accepted too. An artifact out of reach is reported as not found.
 */
async function resolveArtifact(ctx: ReadContext, id: string): Promise<string> {
  const isSuffix = /^[0-9a-f]{16}$/.test(id);
  if (!isSuffix && !isUid(id)) throw invalid('artifact_id', 'must be the uid of an artifact, or the last part of one');
  const reach = requireListReach(ctx);
  const candidates = isSuffix ? await findReferring(ctx.db, artifacts, 'id', id) : [id];
  const [uid, another] = candidates.filter((each) => reach.some((scope) => isWithin(each, scope)));
  if (another) throw invalid('artifact_id', 'is the last part of several uids; use the complete uid');
  if (uid === undefined || !(await exists(ctx.db, artifacts.kind, uid))) throw notFound(artifacts.kind, id);
  return uid;
}

const readFilters = createFilterReader(artifacts, GetArtifactCountRequestSchema.fields);

const countArtifacts = readOperation(getArtifactCount, async ({ db, caller, method }, request) => {
  const [ecosystems] = readFilters(request).filters;
  const reach = caller.reach(method.capabilities);
  const counts = [];
  for (const ecosystem of new Set(ecosystems?.values)) {
    const filters = [{ field: 'ecosystems', values: [ecosystem] }];
    const totalCount = BigInt(await countMatching(db, artifacts, reach, { filters }));
    counts.push({ ecosystem: Number(ecosystem) as Ecosystem, totalCount });
  }
  return create(GetArtifactCountResponseSchema, { counts });
});
