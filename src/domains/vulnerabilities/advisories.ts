import { equals } from '@bufbuild/protobuf';
import { alreadyExists } from '../../base/errors.ts';
import { parentOf, rootOf } from '../../base/uid.ts';
import {
  AdvisoriesService,
  type Advisory,
  AdvisorySchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { Operations } from '../../resource/context.ts';
import { defineResource, type Stored } from '../../resource/definition.ts';
import { type Engine, standardOperations } from '../../resource/operations.ts';
import { find, findAll, findByKeys } from '../../resource/read.ts';
import { refuse } from '../../resource/validate.ts';
import { type Draft, holdParent, insertAll, update } from '../../resource/write.ts';
import type { Transaction } from '../../store/store.ts';
import { newAdvisoryId } from './advisory-id.ts';
import { advisoryProblems } from './advisory-rules.ts';
import { typeOf } from './event-types.ts';
import { mergeEvents } from './merge-events.ts';
import { orderedUid } from './ordered-uid.ts';
import { idAs, idsOf, searched, wordsOf } from './search.ts';

/** How a vulnerability affects an artifact. v2 only reads them; importers and v1 write them by `putAdvisory`. */
export const advisories = defineResource({
  kind: 'advisory',
  plural: 'advisories',
  schema: AdvisorySchema,
  parents: ['group'],
  unique: ({ advisoryId }, group) => [
    { key: advisoryKey(group, advisoryId), taken: `an advisory ${advisoryId} exists in this organization` },
  ],
  orders: {
    artifact_name: (advisory) => advisory.artifactName,
    advisory_id: (advisory) => advisory.advisoryId,
  },
  references: { ids: idsOf },
  facets: {
    artifact_names: (advisory) => [advisory.artifactName],
    artifact_types: (advisory) => [advisory.artifactType],
    artifact_architectures: (advisory) => [advisory.artifactArchitecture],
    component_names: (advisory) => [advisory.componentName],
    component_types: (advisory) => [advisory.componentType],
    component_locations: (advisory) => [advisory.componentLocation],
    event_review_states: ({ events }) => events.map((event) => String(event.reviewState)),
    event_authors: ({ events }) => events.map((event) => event.author),
    event_reviewers: ({ events }) => events.map((event) => event.reviewer),
    event_types: ({ events }) => events.map((event) => String(typeOf(event))),
    latest_event_type: ({ events }) => events.slice(-1).map((event) => String(typeOf(event))),
    words: wordsOf,
  },
  // Whoever watches advisories asks for the newest. Every other order would be one more row for each of some twenty facets.
  facetOrders: ['update_time'],
  filters: {
    advisory_ids: { anyOf: 'ids', as: idAs('advisory') },
    legacy_advisory_ids: { anyOf: 'ids', as: idAs('legacy') },
    aliases: { anyOf: 'ids', as: idAs('alias') },
    // Advisories are kept for origin packages, and that is what they call the artifact.
    origin: { anyOf: 'artifact_names' },
    exclude_event_authors: { noneOf: 'event_authors' },
    query: { allOf: searched },
  },
});

/** Within an organization: what one imports must not stand in the way of another. */
export const advisoryKey = (group: string, advisoryId: string): string => `${rootOf(group)}/${advisoryId}`;

export const advisoryOperations = (engine: Engine): Operations =>
  standardOperations(engine, advisories, AdvisoriesService);

export type PutResult = 'created' | 'updated' | 'unchanged';

/**
 * Makes an advisory of a group what `given` says. Its advisory_id tells which one; without one it is new. Events are
 * merged, and saying the same again changes nothing, not even a time.
 */
export async function putAdvisory(tx: Transaction, group: string, given: Advisory, now: number): Promise<PutResult> {
  const [result] = await putAdvisories(tx, group, [given], now);
  return result as PutResult;
}

/** The same for many, which costs a fraction of putting one by one. */
export async function putAdvisories(
  tx: Transaction,
  group: string,
  given: readonly Advisory[],
  now: number,
): Promise<PutResult[]> {
  for (const advisory of given) refuse(advisoryProblems(advisory));
  await holdParent(tx, advisories, group);
  const known = await findKnown(tx, group, given);
  const drafts = new Map<string, Draft<typeof AdvisorySchema>>();
  const addDrafts = async (): Promise<void> => {
    for (const stored of await insertAll(tx, advisories, [...drafts.values()], now)) known.set(idOf(stored), stored);
    drafts.clear();
  };
  const results: PutResult[] = [];
  for (const advisory of given) {
    // Twice in one batch: the second changes what the first has made.
    if (drafts.has(advisory.advisoryId)) await addDrafts();
    const before = known.get(advisory.advisoryId);
    const changed = before && (await change(tx, group, before, advisory, now));
    results.push(changed ?? 'created');
    if (changed) continue;
    const draft = draftOf(group, advisory, now);
    drafts.set(draft.message.advisoryId, draft);
  }
  await addDrafts();
  return results;
}

/** Those that are there already, by advisory id. */
async function findKnown(tx: Transaction, group: string, given: readonly Advisory[]): Promise<Map<string, Stored>> {
  const keys = given
    .filter(({ advisoryId }) => advisoryId !== '')
    .map(({ advisoryId }) => advisoryKey(group, advisoryId));
  const uids = await findByKeys(tx, advisories, keys);
  const stored = await findAll(tx, advisories, [...uids.values()]);
  return new Map(stored.map((each) => [idOf(each), each]));
}

const idOf = ({ message }: Stored): string => (message as Advisory).advisoryId;

function draftOf(group: string, given: Advisory, now: number): Draft<typeof AdvisorySchema> {
  const uid = orderedUid(group, now);
  const advisoryId = given.advisoryId || newAdvisoryId();
  const message = { ...given, advisoryId, events: mergeEvents(uid, [], given.events, now) };
  return { message, uid, parent: group };
}

/** Nothing when it is gone by now. */
async function change(
  tx: Transaction,
  group: string,
  seen: Stored,
  given: Advisory,
  now: number,
): Promise<PutResult | undefined> {
  const { uid } = seen;
  if (parentOf(uid) !== group) {
    const taken = `${given.advisoryId} is an advisory of another group in this organization`;
    throw alreadyExists(advisories.kind, given.advisoryId, taken);
  }
  if (isSame(seen.message as Advisory, merged(seen.message as Advisory, given, now))) return 'unchanged';
  // Only now is it worth a lock, and somebody else may have been faster.
  const before = await find(tx, advisories, uid, tx.lock.update);
  if (!before) return undefined;
  const message = merged(before.message as Advisory, given, now);
  await update(tx, advisories, before, { message, state: before.state }, now);
  return 'updated';
}

const isSame = (a: Advisory, b: Advisory): boolean => equals(AdvisorySchema, a, b);

/** What an advisory becomes. The server's own fields stay. */
function merged(known: Advisory, given: Advisory, now: number): Advisory {
  const { uid, createTime, updateTime } = known;
  const events = mergeEvents(uid, known.events, given.events, now);
  return { ...given, uid, createTime, updateTime, events };
}
