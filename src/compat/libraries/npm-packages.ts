import { create } from '@bufbuild/protobuf';
import * as v1 from '../../contract/gen/platform/libraries/v1/npm_packages.libraries.platform_pb.js';
import type { VersionState } from '../../domains/libraries/artifact-versions.ts';
import type { ArtifactState } from '../../domains/libraries/artifacts.ts';
import { findMalware } from '../../domains/libraries/find-malware.ts';
import { createNpmReader } from '../../domains/libraries/npm-packages.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import { type Operations, readOperation } from '../../resource/operation.ts';
import { readPageSize } from './malware.ts';

const { INTERNAL, INTERNAL_REMEDIATED } = v1.NpmSourceType;
const { list, listVersions } = v1.NpmPackages.method;

interface NpmFilter {
  readonly pageSize: bigint;
  readonly pageToken: string;
  readonly sourceTypes: readonly v1.NpmSourceType[];
}

/** Undefined if the filter matches nothing: all packages of this server were imported, none is read from upstream. */
function readFilter({ pageSize, pageToken, sourceTypes }: NpmFilter) {
  const page = { pageSize: readPageSize(pageSize), pageToken };
  const [internal, remediated] = [INTERNAL, INTERNAL_REMEDIATED].map((each) => sourceTypes.includes(each));
  if (sourceTypes.length === 0 || (internal && remediated)) return { ...page, remediated: undefined };
  return internal || remediated ? { ...page, remediated: remediated === true } : undefined;
}

const sourceTypeOf = (remediated: boolean | undefined): v1.NpmSourceType =>
  remediated ? INTERNAL_REMEDIATED : INTERNAL;

export function npmPackageOperations(pageTokens: PageTokens): Operations {
  const reader = createNpmReader(pageTokens);
  return {
    ...readOperation(list, async (ctx, filter) => {
      const request = readFilter(filter);
      if (!request) return create(list.output);
      const { packages, nextPageToken, totalCount } = await reader.listPackages(ctx, filter.query, request);
      const items = packages.map(({ message: { name, latestVersion, description, versionCount }, state }) => {
        const { license = '', remediated } = (state ?? {}) as Partial<ArtifactState>;
        return {
          ...{ packageName: name, latestVersion, description, license },
          ...{ versionCount: BigInt(versionCount), sourceType: sourceTypeOf(remediated) },
        };
      });
      return create(list.output, { items, nextPageToken, totalCount: BigInt(totalCount) });
    }),
    ...readOperation(listVersions, async (ctx, filter) => {
      const request = readFilter(filter);
      if (!request) return create(listVersions.output);
      const { rows, nextPageToken, totalCount } = await reader.listVersions(ctx, filter.packageName, request);
      const malwareOf = await findMalware(
        ctx.db,
        rows.map(({ message }) => message),
      );
      const items = rows.map(({ message, state }) => {
        const { name, version, sizeBytes, createTime, updateTime } = message;
        const { license = '', remediated, files = {} } = (state ?? {}) as Partial<VersionState>;
        const malware = malwareOf(message);
        return {
          ...{ packageName: name, version, license, sourceType: sourceTypeOf(remediated) },
          ...{ fileSize: sizeBytes, fileCount: BigInt(Object.keys(files).length) },
          ...(createTime && { createdAt: createTime }),
          ...(updateTime && { updatedAt: updateTime }),
          ...{ malwareScanned: malware !== undefined, malwareMalicious: malware !== undefined },
          ...(malware?.createTime && { malwareScannedAt: malware.createTime }),
        };
      });
      return create(listVersions.output, { items, nextPageToken, totalCount });
    }),
  };
}
