import {
  ArtifactSchema,
  ArtifactsService,
  ArtifactVersionSchema,
  Ecosystem,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import * as v1 from '../../contract/gen/platform/libraries/v1/artifacts.libraries.platform_pb.js';
import type { Ecosystem as V1Ecosystem } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { findMalware } from '../../domains/libraries/find-malware.ts';
import type { Operations } from '../../resource/operation.ts';
import { adapt } from '../adapt.ts';
import { adaptList } from '../adapt-list.ts';
import { emptyIfNotFound } from '../empty-if-not-found.ts';
import { createMessageMapper } from '../message-mapper.ts';

const { listArtifacts, listArtifactVersions, getArtifactCount } = ArtifactsService.method;
const { method } = v1.Artifacts;

const renames = { id: 'uid', created_at: 'create_time', updated_at: 'update_time' };
/** Ecosystems have the same numbers in both versions. */
const sameNumber = { toV2: (value: number) => value, toV1: (value: number) => value };
const artifactMapper = createMessageMapper(v1.ArtifactSchema, ArtifactSchema, {
  renames,
  converters: { ecosystem: sameNumber },
});
const versionMapper = createMessageMapper(v1.ArtifactVersionSchema, ArtifactVersionSchema, {
  renames,
  // This server does not store the origin of a version. Whether it is malicious follows from the malware entries.
  onlyV1: ['source_type', 'malware_scanned', 'malware_malicious', 'upstream_published_date'],
});

/** In v1 no ecosystem means all. v2 refuses the numbers that it does not define. */
const ecosystemsOf = (v1Ecosystems: readonly number[]): Ecosystem[] =>
  v1Ecosystems.length === 0 ? [Ecosystem.JAVA, Ecosystem.PYTHON] : v1Ecosystems.map((number): Ecosystem => number);

export const artifactOperations = (operations: Operations): Operations => ({
  ...adapt(operations, method.list, listArtifacts, {
    // The v1 option to include upstream artifacts has no effect: this server has no upstream.
    request: ({ ecosystems, query, cudaVersion, remediated, pageSize, pageToken, skip }) => ({
      ecosystems: ecosystemsOf(ecosystems),
      ...{ query, cudaVersion, remediated },
      ...{ pageSize, pageToken, skip },
    }),
    response: ({ artifacts, nextPageToken, totalCount, skipped }) => ({
      items: artifacts.map(artifactMapper.toV1),
      totalArtifacts: Number(totalCount),
      ...{ nextPageToken, skipped },
    }),
  }),
  ...adaptList(emptyIfNotFound(operations, listArtifactVersions), method.listVersions, listArtifactVersions, {
    request: ({ id }) => ({ artifactId: id }),
    response: async ({ artifactVersions }, { db }) => {
      const malwareOf = await findMalware(db, artifactVersions);
      return artifactVersions.map((version) => {
        const malwareMalicious = malwareOf(version) !== undefined;
        return Object.assign(versionMapper.toV1(version), { malwareScanned: malwareMalicious, malwareMalicious });
      });
    },
    v1FieldNames: { artifact_id: 'id' },
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
