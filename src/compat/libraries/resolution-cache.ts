import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';
import { EcosystemSchema } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import * as v1 from '../../contract/gen/platform/libraries/v1/resolution_cache.libraries.platform_pb.js';
import { putOptOut, readWatermarks, zap } from '../../domains/libraries/resolution-cache.ts';
import { pageSize as checkPageSize } from '../../resource/list/list.ts';
import { type EventFacts, type Operations, readOperation, writeOperation } from '../../resource/operation.ts';
import * as rules from '../../resource/rules.ts';
import { refuse } from '../../resource/validate.ts';

const { method } = v1.ResolutionCache;

const knownEcosystem = rules.enumValue(EcosystemSchema);
const line = rules.line(512);

function requireValid(problems: Readonly<Record<string, string | undefined>>): void {
  refuse(Object.entries(problems).flatMap(([field, description]) => (description ? [{ field, description }] : [])));
}

const watermarksOf = (watermarks: Awaited<ReturnType<typeof readWatermarks>>) =>
  watermarks.map(({ ecosystem, generation, zapCount, optedOut, zappedAt }) => ({
    ...{ ecosystem, optedOut, generation: BigInt(generation), zapCount: BigInt(zapCount) },
    ...(zappedAt !== undefined && { lastZappedAt: timestampFromMs(zappedAt) }),
  }));

/** The subject and the group of both events is the group of the cache. */
const factsOf = (id: string): Omit<EventFacts, 'body'> => ({ subject: id, extensions: { group: id } });

export const resolutionCacheOperations: Operations = {
  ...writeOperation(method.zap, {
    async run(ctx, request) {
      const { parentId, ecosystem, packageName, packagePrefix, version, registry, dryRun, idempotencyKey } = request;
      requireValid({
        ecosystem: knownEcosystem(ecosystem),
        package_prefix: line(packagePrefix),
        package_name: line(packageName),
        version: line(version),
        registry: line(registry),
        idempotency_key: rules.line(128)(idempotencyKey),
      });
      const { results, replayed } = await zap(ctx, parentId, ecosystem, { dryRun, key: idempotencyKey });
      return create(v1.ZapResolutionCacheSummarySchema, {
        ...{ id: parentId, dryRun, replayed },
        results: results.map(({ generation, zappedAt, ...result }) => ({
          ...{ ...result, generation: BigInt(generation), zappedAt: timestampFromMs(zappedAt) },
          // There are no entries to retire.
          retiredCount: 0n,
        })),
      });
    },
    event: (_ctx, _request, message) => ({
      ...factsOf(message.id),
      body: { schema: v1.ZapResolutionCacheSummarySchema, message },
    }),
  }),
  ...writeOperation(method.setOptOut, {
    async run(ctx, { parentId, ecosystem, optedOut }) {
      requireValid({ ecosystem: ecosystem === 0 ? 'is required' : knownEcosystem(ecosystem) });
      const watermarks = watermarksOf(await putOptOut(ctx, parentId, ecosystem, optedOut));
      return create(v1.ResolutionCacheOptOutSchema, { id: parentId, watermarks });
    },
    event: (_ctx, _request, message) => ({
      ...factsOf(message.id),
      body: { schema: v1.ResolutionCacheOptOutSchema, message },
    }),
  }),
  ...readOperation(method.status, async ({ db }, { parentId }) =>
    create(v1.ResolutionCacheStatusSchema, {
      id: parentId,
      watermarks: watermarksOf(await readWatermarks(db, parentId)),
    }),
  ),
  ...readOperation(method.list, (_ctx, { pageSize, cursor }) => {
    checkPageSize(pageSize);
    if (cursor !== '') throw invalid('cursor', 'must be empty, because the list has one page');
    return create(v1.ResolutionCacheEntryListSchema);
  }),
};
