import { notFound } from '../../base/errors.ts';
import type { Group } from '../../contract/gen/chainguard/platform/iam/v2/groups_pb.js';
import { Ecosystem } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import type { Stored } from '../../resource/definition.ts';
import type { WriteContext } from '../../resource/operation.ts';
import { find } from '../../resource/read.ts';
import { update } from '../../resource/write.ts';
import type { Reader } from '../../store/store.ts';
import { groups } from '../iam/groups/groups.ts';

/** What is recorded about one ecosystem of a group. The server resolves no packages, so there is no cache to change. */
export interface Watermark {
  /** The number of the cache that is valid: raised by each invalidation. */
  readonly generation: number;
  readonly zapCount: number;
  readonly optedOut: boolean;
  readonly zappedAt?: number | undefined;
}

/** The result of an invalidation for one ecosystem. */
export interface ZapResult {
  readonly ecosystem: Ecosystem;
  readonly generation: number;
  readonly zappedAt: number;
}

/** The private state of a group. */
interface CacheState {
  readonly watermarks: Readonly<Record<string, Watermark>>;
  /** The results of the last invalidations with an idempotency key. */
  readonly zaps: readonly { readonly key: string; readonly results: readonly ZapResult[] }[];
}

const KNOWN_ZAPS = 20;
const NO_WATERMARK: Watermark = { generation: 0, zapCount: 0, optedOut: false };

const stateOf = ({ state }: Stored<Group>): CacheState => ({
  ...{ watermarks: {}, zaps: [] },
  ...(state?.resolutionCache as CacheState | undefined),
});

/** The ecosystems that were invalidated or opted out, in the order of their numbers. */
const watermarksOf = ({ watermarks }: CacheState) =>
  Object.entries(watermarks).map(([ecosystem, watermark]) => ({
    ecosystem: Number(ecosystem) as Ecosystem,
    ...watermark,
  }));

async function requireGroup(db: Reader, group: string): Promise<Stored<Group>> {
  const stored = await find(db, groups, group);
  if (!stored) throw notFound(groups.kind, group);
  return stored;
}

const store = ({ db, now }: WriteContext, group: Stored<Group>, resolutionCache: CacheState) =>
  update(db, groups, group, { message: group.message, state: { ...group.state, resolutionCache } }, now);

export const readWatermarks = async (db: Reader, group: string) => watermarksOf(stateOf(await requireGroup(db, group)));

export async function putOptOut(ctx: WriteContext, group: string, ecosystem: Ecosystem, optedOut: boolean) {
  const stored = await requireGroup(ctx.db.forUpdate, group);
  const before = stateOf(stored);
  const watermark = before.watermarks[ecosystem] ?? NO_WATERMARK;
  const after = { ...before, watermarks: { ...before.watermarks, [ecosystem]: { ...watermark, optedOut } } };
  if (watermark.optedOut === optedOut && ecosystem in before.watermarks) ctx.unchanged();
  else await store(ctx, stored, after);
  return watermarksOf(after);
}

/** Records an invalidation. With `dryRun` it only says what would be recorded. */
export async function zap(
  ctx: WriteContext,
  group: string,
  ecosystem: Ecosystem,
  { dryRun, key }: { readonly dryRun: boolean; readonly key: string },
): Promise<{ readonly results: readonly ZapResult[]; readonly replayed: boolean }> {
  const stored = await requireGroup(ctx.db.forUpdate, group);
  const { watermarks, zaps } = stateOf(stored);
  const earlier = key === '' ? undefined : zaps.find((each) => each.key === key);
  if (earlier || dryRun) ctx.unchanged();
  if (earlier) return { results: earlier.results, replayed: true };

  const zappedAt = ctx.now;
  const raised = (ecosystem === Ecosystem.UNKNOWN ? ALL : [ecosystem]).map((each) => {
    const { generation, zapCount, optedOut } = watermarks[each] ?? NO_WATERMARK;
    return [each, { generation: generation + 1, zapCount: zapCount + 1, optedOut, zappedAt }] as const;
  });
  const results = raised.map(([each, { generation }]) => ({ ecosystem: each, generation, zappedAt }));
  if (!dryRun) {
    const known = key === '' ? zaps : [{ key, results }, ...zaps].slice(0, KNOWN_ZAPS);
    await store(ctx, stored, { watermarks: { ...watermarks, ...Object.fromEntries(raised) }, zaps: known });
  }
  return { results, replayed: false };
}

const ALL = Object.values(Ecosystem).filter((each): each is Ecosystem => typeof each === 'number' && each !== 0);
