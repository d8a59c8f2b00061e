import { rootOf } from '../../base/uid.ts';
import { AdvisorySchema } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { defineResource, timestampKey } from '../../resource/definition.ts';
import { eventTypeOf } from './advisory-event-types.ts';
import { idKey, idKeysOf, searchWordsOf, toSearchFilters } from './advisory-search.ts';

// This folder serves the API domain `vulnerabilities`, which has advisories. The folder `advisory-documents` serves the API
// domain `advisory`, which has documents and vulnerability metadata.

/** An advisory: how a vulnerability affects an artifact. v2 only reads advisories; imports and v1 write them. */
export const advisories = defineResource({
  kind: 'advisory',
  plural: 'advisories',
  schema: AdvisorySchema,
  parents: ['group'],
  unique: ({ advisoryId }, group) => [
    { key: advisoryKey(group, advisoryId), taken: `an advisory ${advisoryId} exists in this organization` },
  ],
  orders: { artifact_name: (advisory) => advisory.artifactName },
  // Only v1 has these orders. Advisory ids are random, so that each insert would touch another page of every index.
  rareOrders: {
    advisory_id: (advisory) => advisory.advisoryId,
    aliases: ({ aliases }) => aliases[0] ?? '',
    delete_time: ({ deleteTime }) => timestampKey(deleteTime),
  },
  references: { ids: idKeysOf },
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
    event_types: ({ events }) => events.map((event) => String(eventTypeOf(event))),
    latest_event_type: ({ events }) => events.slice(-1).map((event) => String(eventTypeOf(event))),
    words: searchWordsOf,
  },
  // Most filtered lists ask for the newest. Each further order would need a row for each of some twenty facet values.
  facetOrders: ['update_time'],
  filters: {
    advisory_ids: { anyOf: 'ids', as: idKey('advisory') },
    legacy_advisory_ids: { anyOf: 'ids', as: idKey('legacy') },
    aliases: { anyOf: 'ids', as: idKey('alias') },
    // The artifact of an advisory is the origin package.
    origin: { anyOf: 'artifact_names' },
    exclude_event_authors: { noneOf: 'event_authors' },
    query: { allOf: toSearchFilters },
  },
});

/** Advisory ids are unique within an organization, so that imports of different organizations cannot conflict. */
export const advisoryKey = (group: string, advisoryId: string): string => `${rootOf(group)}/${advisoryId}`;
