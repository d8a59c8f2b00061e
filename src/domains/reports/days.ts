import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const MAX_DAYS = 366;

/** A stretch of time, and the days in UTC that it touches. */
export interface Period {
  readonly from: number;
  readonly to: number;
  /** When each day begins. */
  readonly days: readonly number[];
}

export const endOf = (day: number): number => day + DAY_MS - 1;

export interface PeriodRequest {
  /** When absent, as long ago as the day of `to` begins. */
  readonly from: Timestamp | undefined;
  /** Now when absent. */
  readonly to: Timestamp | undefined;
  /** What the request calls them. */
  readonly fields: { readonly from: string; readonly to: string };
}

export function periodOf(asked: PeriodRequest, now: number): Period {
  const { fields } = asked;
  const to = asked.to ? timestampMs(asked.to) : now;
  const from = asked.from ? timestampMs(asked.from) : dayOf(to);
  if (to < from) throw invalid(fields.to, `must not be before ${fields.from}`);
  const first = dayOf(from);
  const count = (dayOf(to) - first) / DAY_MS + 1;
  if (count > MAX_DAYS) throw invalid(fields.to, `must be less than ${MAX_DAYS} days after ${fields.from}`);
  return { from, to, days: Array.from({ length: count }, (_, i) => first + i * DAY_MS) };
}

const dayOf = (time: number): number => Math.floor(time / DAY_MS) * DAY_MS;
