import { create } from '@bufbuild/protobuf';
import { invalid, notFound } from '../../base/errors.ts';
import { isUid, isWithin } from '../../base/uid.ts';
import {
  ArtifactsService,
  type Ecosystem,
  GetArtifactCountRequestSchema,
  GetArtifactCountResponseSchema,
  type ListArtifactVersionsRequest,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { Engine } from '../../resource/engine.ts';
import { countSelected } from '../../resource/list/count.ts';
import { requestFilters } from '../../resource/list/request-filters.ts';
import type { Operation, Operations, ReadContext } from '../../resource/operation.ts';
import { exists, findReferring } from '../../resource/read.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { artifactVersions } from './artifact-versions.ts';
import { artifacts } from './artifacts.ts';

const { listArtifactVersions, getArtifactCount } = ArtifactsService.method;
const idOf = ({ name }: { readonly name: string }): string => `${ArtifactsService.typeName}/${name}`;

export function artifactOperations(engine: Engine): Operations {
  const versions = standardOperations(engine, artifactVersions, ArtifactsService);
  const listVersions = versions[idOf(listArtifactVersions)];
  if (listVersions?.mode !== 'read') throw new Error('the contract has no list of artifact versions');
  return {
    ...standardOperations(engine, artifacts, ArtifactsService),
    [idOf(listArtifactVersions)]: {
      mode: 'read',
      async run(ctx, request) {
        const { artifactId } = request as ListArtifactVersionsRequest;
        return listVersions.run(ctx, { ...request, artifactId: await findArtifact(ctx, artifactId) } as typeof request);
      },
    },
    [idOf(getArtifactCount)]: countArtifacts,
  };
}

/**
 * The uid of an artifact that the caller reaches. Its route gives an id a single segment, where a uid fits only with its
 * slashes as %2F; so the last part of a uid will do. What is out of reach looks like what is not there.
 */
async function findArtifact({ db, caller, method }: ReadContext, id: string): Promise<string> {
  const isSuffix = /^[0-9a-f]{16}$/.test(id);
  if (!isSuffix && !isUid(id)) throw invalid('artifact_id', 'must be the uid of an artifact, or the last part of one');
  const reach = caller.reach(method.capabilities);
  const candidates = isSuffix ? await findReferring(db, artifacts, 'id', id) : [id];
  const [uid, another] = candidates.filter((each) => reach.some((scope) => isWithin(each, scope)));
  if (another) throw invalid('artifact_id', 'is the last part of several uids; give the whole uid');
  if (uid === undefined || !(await exists(db, artifacts.kind, uid))) throw notFound(artifacts.kind, id);
  return uid;
}

const selectCounted = requestFilters(artifacts, GetArtifactCountRequestSchema.fields);

const countArtifacts: Operation = {
  mode: 'read',
  async run({ db, caller, method }, request) {
    const [asked] = selectCounted(request).filters;
    const reach = caller.reach(method.capabilities);
    const counts = [];
    for (const value of new Set(asked?.values)) {
      const filters = [{ field: 'ecosystems', values: [value] }];
      const totalCount = BigInt(await countSelected(db, artifacts, reach, { filters }));
      counts.push({ ecosystem: Number(value) as Ecosystem, totalCount });
    }
    return create(GetArtifactCountResponseSchema, { counts });
  },
};
