import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
import type { Ecosystem } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import {
  type LibraryPolicyBlockEvent,
  LibraryPolicyBlockEventSchema,
} from '../../contract/gen/wharfinger/libraries/v1/library_policy_block_events_pb.js';
import { defineResource } from '../../resource/definition.ts';
import type { WriteContext } from '../../resource/operation.ts';
import { type Upsert, upsertAll } from '../../resource/upsert.ts';
import type { Block } from './block-check.ts';

/** A package version that imports into a group refused, or would have refused. Its times are the first and the last. */
export const libraryPolicyBlockEvents = defineResource({
  kind: 'library policy block event',
  plural: 'library policy block events',
  schema: LibraryPolicyBlockEventSchema,
  parents: ['group'],
  unique: (event, group) => [{ key: keyOf(group, event), taken: `${event.purl} was blocked here already` }],
  references: { package_name: ({ packageName }) => [packageName] },
  facets: { ecosystem: ({ ecosystem }) => [String(ecosystem)], mode: ({ mode }) => [String(mode)] },
  facetOrders: ['update_time'],
  since: { since: 'update_time' },
  defaultOrder: 'update_time desc',
});

const keyOf = (group: string, { purl, policyUid, mode }: Pick<Block, 'purl' | 'policyUid' | 'mode'>): string =>
  `${group} ${purl} ${policyUid} ${mode}`;

/** Records that versions were blocked. A version that the same policy has blocked before is counted once more. */
export async function recordBlocks(
  { db, now }: Pick<WriteContext, 'db' | 'now'>,
  group: string,
  ecosystem: Ecosystem,
  blocks: readonly Block[],
): Promise<void> {
  if (blocks.length === 0) return;
  const upserts = blocks.map(({ published, unblocked, ...block }): Upsert<LibraryPolicyBlockEvent> => {
    const publishTime = timestampFromMs(published);
    const times = { publishTime, ...(unblocked !== undefined && { unblockTime: timestampFromMs(unblocked) }) };
    return {
      key: keyOf(group, block),
      newUid: (parent) => timeOrderedUid(parent, now),
      merge(_uid, existing) {
        const event = existing ? clone(LibraryPolicyBlockEventSchema, existing) : create(LibraryPolicyBlockEventSchema);
        delete event.unblockTime;
        return Object.assign(event, block, times, { ecosystem, attemptCount: event.attemptCount + 1 });
      },
    };
  });
  await upsertAll(db, libraryPolicyBlockEvents, group, upserts, now);
}
