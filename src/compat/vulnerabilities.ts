import { create } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { invalid } from '../base/errors.ts';
import { parseUid } from '../base/uid.ts';
import {
  AdvisoriesService,
  type AdvisoryEvent,
  AdvisoryEvent_Detection_ScanV1Schema,
  AdvisoryEventSchema,
  AdvisorySchema,
} from '../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import * as v1 from '../contract/gen/platform/vulnerabilities/v1/advisory.vulnerabilities_pb.js';
import {
  createAdvisory,
  createEvent,
  deleteAdvisory,
  updateAdvisory,
  updateEvent,
} from '../domains/advisories/write-advisories.ts';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { uidpFilterOf } from './adapt-list.ts';
import { emptyIfNotFound } from './empty-if-not-found.ts';
import { createMessageMapper } from './message-mapper.ts';
import { v1WriteOperation } from './v1-write-operation.ts';

const { method } = v1.Advisories;
const { getAdvisory, listAdvisories } = AdvisoriesService.method;

const scanMapper = createMessageMapper(v1.AdvisoryEvent_Detection_ScanV1Schema, AdvisoryEvent_Detection_ScanV1Schema, {
  renames: { subpackage_name: 'subpackage', component_name: 'component' },
});
const eventMapper = createMessageMapper(v1.AdvisoryEventSchema, AdvisoryEventSchema, {
  renames: { id: 'uid', timestamp: 'create_time', status: 'review_state' },
  onlyV1: ['component_location_changed'],
  onlyV2: ['update_time'],
  converters: { scanv1: scanMapper },
});
const eventsConverter = {
  toV2: (events: readonly v1.AdvisoryEvent[]) => events.map(eventToV2),
  toV1: (events: readonly AdvisoryEvent[]) => events.map(eventMapper.toV1),
};
const advisoryMapper = createMessageMapper(v1.AdvisorySchema, AdvisorySchema, {
  renames: {
    id: 'uid',
    created_at: 'create_time',
    updated_at: 'update_time',
    deleted_at: 'delete_time',
    legacyAdvisoryID: 'legacy_advisory_id',
  },
  onlyV2: ['severities'],
  converters: { events: eventsConverter },
});

const v1FieldNames = { uid: 'id', create_time: 'timestamp', review_state: 'status', delete_time: 'deleted_at' };

/** Single advisories are written through v1 only: v2 has no methods for it. */
export const vulnerabilityOperations = (operations: Operations): Operations => ({
  ...v1WriteOperation(method.create, v1FieldNames, async (ctx, { parentId, advisory }) => {
    const v2Advisory = advisoryMapper.toV2(advisory ?? create(v1.AdvisorySchema));
    return advisoryMapper.toV1(await createAdvisory(ctx, parseUid('parent_id', parentId), v2Advisory));
  }),
  ...v1WriteOperation(method.update, v1FieldNames, async (ctx, advisory) =>
    advisoryMapper.toV1(await updateAdvisory(ctx, advisoryMapper.toV2(advisory))),
  ),
  ...v1WriteOperation(method.delete, v1FieldNames, async (ctx, { id }) => {
    await deleteAdvisory(ctx, id);
    return create(EmptySchema);
  }),
  ...v1WriteOperation(method.createAdvisoryEvent, v1FieldNames, async (ctx, { parentId, advisoryEvent }) => {
    const v2Event = eventToV2(advisoryEvent ?? create(v1.AdvisoryEventSchema));
    return eventMapper.toV1(await createEvent(ctx, parseUid('parent_id', parentId), v2Event));
  }),
  ...v1WriteOperation(method.updateAdvisoryEvent, v1FieldNames, async (ctx, event) =>
    eventMapper.toV1(await updateEvent(ctx, eventToV2(event))),
  ),
  ...adapt(emptyIfNotFound(operations, getAdvisory), method.listAdvisoryEvents, getAdvisory, {
    request: ({ parentId }) => ({ uid: parentId }),
    response: ({ events }, { parentId }) => ({ parentId, items: events.map(eventMapper.toV1) }),
    v1FieldNames: { uid: 'parent_id' },
  }),
  ...adapt(operations, method.list, listAdvisories, {
    request: (filter) => ({
      uidp: uidpFilterOf(filter.uidp, filter.id),
      advisoryIds: filter.advisoryIds,
      legacyAdvisoryIds: filter.legacyAdvisoryIds,
      artifactNames: filter.artifactName,
      artifactTypes: filter.artifactType,
      artifactArchitectures: filter.artifactArchitecture,
      componentNames: filter.componentName,
      componentTypes: filter.componentType,
      componentLocations: filter.componentLocation,
      aliases: filter.aliases,
      eventReviewStates: filter.eventStatuses.map((status): number => status),
      eventAuthors: filter.eventAuthor,
      excludeEventAuthors: filter.excludeEventAuthor,
      eventReviewers: filter.eventReviewer,
      eventTypes: filter.eventTypes.map((type): number => type),
      ...(filter.latestEventType !== undefined && { latestEventType: filter.latestEventType as number }),
      ...(filter.origin !== undefined && { origin: filter.origin }),
      pageSize: Number(filter.pageSize > MAX_PAGE_SIZE ? MAX_PAGE_SIZE : filter.pageSize),
      pageToken: filter.pageToken,
      orderBy: toV2Order(filter.orderBy),
    }),
    response: ({ advisories, nextPageToken, totalCount }) => ({
      items: advisories.map(advisoryMapper.toV1),
      nextPageToken,
      ...(totalCount !== undefined && { totalCount }),
    }),
    v1FieldNames: {
      artifact_names: 'artifact_name',
      artifact_types: 'artifact_type',
      artifact_architectures: 'artifact_architecture',
      component_names: 'component_name',
      component_types: 'component_type',
      component_locations: 'component_location',
      event_review_states: 'event_statuses',
      event_authors: 'event_author',
      exclude_event_authors: 'exclude_event_author',
      event_reviewers: 'event_reviewer',
    },
  }),
});

/** v2 stores the current location of a component, but not its former locations. */
function eventToV2(event: v1.AdvisoryEvent) {
  if (event.type.case === 'componentLocationChanged') {
    throw invalid('component_location_changed', 'is not stored; change component_location by updating the advisory');
  }
  return eventMapper.toV2(event);
}

const MAX_PAGE_SIZE = 200n;

/** The v2 name of each field that v1 can order by. */
const ORDER_FIELDS: Readonly<Record<string, string>> = {
  ID: 'uid',
  CREATED_AT: 'create_time',
  ALIASES: 'aliases',
  UPDATED_AT: 'update_time',
  DELETED_AT: 'delete_time',
};

/** Returns `update_time desc` for UPDATED_AT_DESC. */
function toV2Order(order: v1.OrderBy): string {
  if (order === v1.OrderBy.ORDER_BY_UNSPECIFIED) return '';
  const [, v1Field = '', direction = ''] = /^(.*)_(ASC|DESC)$/.exec(v1.OrderBySchema.value[order]?.name ?? '') ?? [];
  const field = ORDER_FIELDS[v1Field];
  if (field === undefined) throw invalid('order_by', 'must be a value of the enum OrderBy');
  return `${field} ${direction.toLowerCase()}`;
}
