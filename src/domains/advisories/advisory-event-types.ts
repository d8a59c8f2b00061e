import {
  type AdvisoryEvent,
  EventTypeFilter,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';

type EventCase = NonNullable<AdvisoryEvent['type']['case']>;

const FILTERS: Readonly<Record<EventCase, EventTypeFilter>> = {
  detection: EventTypeFilter.DETECTION,
  truePositiveDetermination: EventTypeFilter.TRUE_POSITIVE_DETERMINATION,
  fixed: EventTypeFilter.FIXED,
  falsePositiveDetermination: EventTypeFilter.FALSE_POSITIVE_DETERMINATION,
  analysisNotPlanned: EventTypeFilter.ANALYSIS_NOT_PLANNED,
  fixNotPlanned: EventTypeFilter.FIX_NOT_PLANNED,
  pendingUpstreamFix: EventTypeFilter.PENDING_UPSTREAM_FIX,
  patched: EventTypeFilter.PATCHED,
};

/** The value of the filters `event_types` and `latest_event_type` for an event. */
export const eventTypeOf = ({ type }: AdvisoryEvent): EventTypeFilter =>
  type.case === undefined ? EventTypeFilter.UNSPECIFIED : FILTERS[type.case];
