import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type ArtifactVersion,
  ListArtifactsRequestSchema,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { Stored } from '../../resource/definition.ts';
import { pageOfComputed } from '../../resource/list/computed-list.ts';
import type { Filter } from '../../resource/list/conditions.ts';
import { createLister, type ListRequest } from '../../resource/list/list.ts';
import type { PageTokens } from '../../resource/list/page-token.ts';
import type { ReadContext } from '../../resource/operation.ts';
import { findAll, findChildren } from '../../resource/read.ts';
import { artifactVersions } from './artifact-versions.ts';
import { artifacts, REMEDIATED } from './artifacts.ts';
import { JAVASCRIPT, rulesOf } from './ecosystems.ts';

/** The page of a request, and which packages or versions it wants by their origin. */
export interface NpmRequest {
  readonly pageSize: number;
  readonly pageToken: string;
  /** Undefined for both. */
  readonly remediated: boolean | undefined;
}

type ArtifactsRequest = MessageInitShape<typeof ListArtifactsRequestSchema>;

/** Reads the artifacts of the JavaScript ecosystem, which v2 does not have. */
export function createNpmReader(pageTokens: PageTokens) {
  const readArtifacts = (ctx: ReadContext, request: ArtifactsRequest, filters: readonly Filter[]) => {
    const ecosystem = { field: 'ecosystems', values: [String(JAVASCRIPT)] };
    const list = createLister(artifacts, ListArtifactsRequestSchema, pageTokens, [ecosystem, ...filters]);
    return list(ctx, create(ListArtifactsRequestSchema, request) as object as ListRequest);
  };

  return {
    /** A page of the packages within the reach of the caller, by name. */
    async listPackages(ctx: ReadContext, query: string, { pageSize, pageToken, remediated }: NpmRequest) {
      const filters = remediated === undefined ? [] : [{ ...REMEDIATED_FILTER, excludes: !remediated }];
      const { messages, ...page } = await readArtifacts(ctx, { query, pageSize, pageToken }, filters);
      const stored = await findAll(
        ctx.db,
        artifacts,
        messages.map(({ uid }) => uid),
      );
      const byUid = new Map(stored.map((each) => [each.uid as string, each]));
      const packages = messages.map(({ uid }) => byUid.get(uid)).filter((each) => each !== undefined);
      return { packages, ...page };
    },

    /**
     * A page of the versions of a package, the newest first. A version that several groups within the reach of the caller
     * have is listed once.
     */
    async listVersions(ctx: ReadContext, name: string, { pageSize, pageToken, remediated }: NpmRequest) {
      const key = rulesOf(JAVASCRIPT).normalizeName(name).toLowerCase();
      const { messages } = await readArtifacts(ctx, { pageSize: MAX_GROUPS }, [{ field: 'name', values: [key] }]);
      const versions = new Map<string, Stored<ArtifactVersion>>();
      for (const artifact of messages.filter((each) => each.name === name)) {
        for (const stored of await findChildren(ctx.db, artifactVersions, artifact.uid)) {
          const isWanted = remediated === undefined || Boolean(stored.state?.remediated) === remediated;
          if (isWanted) versions.set(stored.message.version, stored);
        }
      }
      const request = { pageSize, pageToken, orderBy: `${ORDER} desc`, skip: 0 };
      return pageOfComputed(ctx, pageTokens, request, {
        rows: [...versions.values()],
        order: ORDER,
        keyOf: ({ uid, created }) => `${String(created).padStart(15, '0')} ${uid}`,
        query: [name, remediated],
      });
    },
  };
}

const ORDER = 'create_time';
const REMEDIATED_FILTER = { field: 'remediated', values: [REMEDIATED] };
/** The groups of one caller that have the same package. More are not read. */
const MAX_GROUPS = 200;
