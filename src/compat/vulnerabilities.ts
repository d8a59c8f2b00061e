import { create, type MessageShape } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import { invalid } from '../base/errors.ts';
import {
  AdvisoriesService,
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
} from '../domains/vulnerabilities/write-advisories.ts';
import type { Operations } from '../resource/operation.ts';
import { adapt } from './adapt.ts';
import { within } from './list-all.ts';
import { vocabulary } from './message-mapper.ts';
import { orNothing, writeOnly } from './v1-only.ts';

const { method } = v1.Advisories;
const { getAdvisory, listAdvisories } = AdvisoriesService.method;

const scan = vocabulary(v1.AdvisoryEvent_Detection_ScanV1Schema, AdvisoryEvent_Detection_ScanV1Schema, {
  names: { subpackage_name: 'subpackage', component_name: 'component' },
});
const event = vocabulary(v1.AdvisoryEventSchema, AdvisoryEventSchema, {
  names: { id: 'uid', timestamp: 'create_time', status: 'review_state' },
  onlyV1: ['component_location_changed'],
  onlyV2: ['update_time'],
  values: { scanv1: scan },
});
const events = {
  toV2: (all: readonly v1.AdvisoryEvent[]) => all.map(eventToV2),
  toV1: (all: readonly MessageShape<typeof AdvisoryEventSchema>[]) => all.map(event.toV1),
};
const advisory = vocabulary(v1.AdvisorySchema, AdvisorySchema, {
  names: {
    id: 'uid',
    created_at: 'create_time',
    updated_at: 'update_time',
    deleted_at: 'delete_time',
    legacyAdvisoryID: 'legacy_advisory_id',
  },
  onlyV2: ['severities'],
  values: { events },
});

const fields = { uid: 'id', create_time: 'timestamp', review_state: 'status', delete_time: 'deleted_at' };

/** v2 only reads advisories: v1 is how they are written one at a time. */
export const vulnerabilityOperations = (operations: Operations): Operations => ({
  ...writeOnly(method.create, fields, async (ctx, { parentId, advisory: given }) => {
    return advisory.toV1(await createAdvisory(ctx, parentId, advisory.toV2(given ?? create(v1.AdvisorySchema))));
  }),
  ...writeOnly(method.update, fields, async (ctx, given) =>
    advisory.toV1(await updateAdvisory(ctx, advisory.toV2(given))),
  ),
  ...writeOnly(method.delete, fields, async (ctx, { id }) => {
    await deleteAdvisory(ctx, id);
    return create(EmptySchema);
  }),
  ...writeOnly(method.createAdvisoryEvent, fields, async (ctx, { parentId, advisoryEvent }) => {
    return event.toV1(await createEvent(ctx, parentId, eventToV2(advisoryEvent ?? create(v1.AdvisoryEventSchema))));
  }),
  ...writeOnly(method.updateAdvisoryEvent, fields, async (ctx, given) =>
    event.toV1(await updateEvent(ctx, eventToV2(given))),
  ),
  ...adapt(orNothing(operations, getAdvisory), method.listAdvisoryEvents, getAdvisory, {
    request: ({ parentId }) => ({ uid: parentId }),
    response: ({ events }, { parentId }) => ({ parentId, items: events.map(event.toV1) }),
    fields: { uid: 'parent_id' },
  }),
  ...adapt(operations, method.list, listAdvisories, {
    request: (filter) => ({
      uidp: within(filter.uidp, filter.id),
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
      pageSize: Number(filter.pageSize > MAX_PAGE ? MAX_PAGE : filter.pageSize),
      pageToken: filter.pageToken,
      orderBy: orderOf(filter.orderBy),
    }),
    response: ({ advisories, nextPageToken, totalCount }) => ({
      items: advisories.map(advisory.toV1),
      nextPageToken,
      ...(totalCount !== undefined && { totalCount }),
    }),
    fields: {
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

/** v2 shows only where a component is, not where it was. */
function eventToV2(given: v1.AdvisoryEvent) {
  if (given.type.case === 'componentLocationChanged') {
    throw invalid('component_location_changed', 'is not kept; change component_location by updating the advisory');
  }
  return event.toV2(given);
}

const MAX_PAGE = 200n;

const ORDERS: Readonly<Record<string, string>> = {
  ID: 'uid',
  CREATED_AT: 'create_time',
  ALIASES: 'aliases',
  UPDATED_AT: 'update_time',
  DELETED_AT: 'delete_time',
};

/** `update_time desc` for UPDATED_AT_DESC. */
function orderOf(order: v1.OrderBy): string {
  if (order === v1.OrderBy.ORDER_BY_UNSPECIFIED) return '';
  const [, field = '', direction = ''] = /^(.*)_(ASC|DESC)$/.exec(v1.OrderBySchema.value[order]?.name ?? '') ?? [];
  const known = ORDERS[field];
  if (known === undefined) throw invalid('order_by', 'must be an order that the contract names');
  return `${known} ${direction.toLowerCase()}`;
}
