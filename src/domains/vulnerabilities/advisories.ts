import { timestampMs } from '@bufbuild/protobuf/wkt';
import { rootOf } from '../../base/uid.ts';
import {
  AdvisoriesService,
  AdvisorySchema,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { defineResource, timeKey } from '../../resource/definition.ts';
import type { Engine } from '../../resource/engine.ts';
import type { Operations } from '../../resource/operation.ts';
import { standardOperations } from '../../resource/standard-methods.ts';
import { typeOf } from './event-types.ts';
import { idAs, idsOf, searched, wordsOf } from './search.ts';

/** How a vulnerability affects an artifact. v2 only reads them; imports and v1 write them. */
export const advisories = defineResource({
  kind: 'advisory',
  plural: 'advisories',
  schema: AdvisorySchema,
  parents: ['group'],
  unique: ({ advisoryId }, group) => [
    { key: advisoryKey(group, advisoryId), taken: `an advisory ${advisoryId} exists in this organization` },
  ],
  orders: { artifact_name: (advisory) => advisory.artifactName },
  // Those of v1; and ids are random, so that each new one would touch a page of its own in every index.
  rareOrders: {
    advisory_id: (advisory) => advisory.advisoryId,
    aliases: ({ aliases }) => aliases[0] ?? '',
    delete_time: ({ deleteTime }) => (deleteTime ? timeKey(Math.max(0, timestampMs(deleteTime))) : ''),
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
