import {
  ArtifactSchema,
  ArtifactsService,
  ArtifactVersionSchema,
  Ecosystem,
} from '../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import * as v1 from '../contract/gen/platform/libraries/v1/artifacts.libraries.platform_pb.js';
import type { Ecosystem as V1Ecosystem } from '../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { listAll } from './list-all.ts';
import { vocabulary } from './message-mapper.ts';
import { orNothing } from './v1-only.ts';

const { listArtifacts, listArtifactVersions, getArtifactCount } = ArtifactsService.method;
const { method } = v1.Artifacts;

const names = { id: 'uid', created_at: 'create_time', updated_at: 'update_time' };
/** Both versions number ecosystems alike. */
const alike = { toV2: (value: number) => value, toV1: (value: number) => value };
const artifact = vocabulary(v1.ArtifactSchema, ArtifactSchema, { names, values: { ecosystem: alike } });
const version = vocabulary(v1.ArtifactVersionSchema, ArtifactVersionSchema, {
  names,
  // Where a version comes from and who has looked at it is not known here.
  onlyV1: ['source_type', 'malware_scanned', 'malware_malicious', 'upstream_published_date'],
});

/** v1 need not say which. Those that v2 does not have, it refuses. */
const ecosystemsOf = (asked: readonly number[]): Ecosystem[] =>
  asked.length === 0 ? [Ecosystem.JAVA, Ecosystem.PYTHON] : asked.map((one): Ecosystem => one);

export const libraryOperations = (operations: Operations): Operations => ({
  ...adapt(operations, method.list, listArtifacts, {
    // There is no upstream here to include.
    request: ({ ecosystems, query, cudaVersion, remediated, pageSize, pageToken, skip }) => ({
      ecosystems: ecosystemsOf(ecosystems),
      ...{ query, cudaVersion, remediated },
      ...{ pageSize, pageToken, skip },
    }),
    response: ({ artifacts, nextPageToken, totalCount, skipped }) => ({
      items: artifacts.map(artifact.toV1),
      totalArtifacts: Number(totalCount),
      ...{ nextPageToken, skipped },
    }),
  }),
  ...listAll(orNothing(operations, listArtifactVersions), method.listVersions, listArtifactVersions, {
    request: ({ id }) => ({ artifactId: id }),
    response: ({ artifactVersions }) => artifactVersions.map(version.toV1),
    fields: { artifact_id: 'id' },
  }),
  ...adapt(operations, method.getArtifactCount, getArtifactCount, {
    request: ({ ecosystems }) => ({ ecosystems: ecosystemsOf(ecosystems) }),
    response: ({ counts }) => ({
      counts: counts.map(({ ecosystem, totalCount }) => ({
        ecosystem: ecosystem as number as V1Ecosystem,
        totalArtifacts: Number(totalCount),
      })),
    }),
  }),
});
