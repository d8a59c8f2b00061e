import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { invalid } from '../../base/errors.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const MAX_DAYS = 366;

/** A range of time, and the days in UTC that it includes or touches. */
export interface Period {
  readonly from: number;
  readonly to: number;
  /** The start of each day, in milliseconds. */
  readonly days: readonly number[];
}

export const endOfDay = (day: number): number => day + DAY_MS - 1;

export interface PeriodRequest {
  /** The start of the day of `to` when absent. */
  readonly from: Timestamp | undefined;
  /** Now when absent. */
  readonly to: Timestamp | undefined;
  /** The names of the request fields, for errors. */
  readonly fields: { readonly from: string; readonly to: string };
}

export function periodOf(request: PeriodRequest, now: number): Period {
  const { fields } = request;
  const to = request.to ? timestampMs(request.to) : now;
  const from = request.from ? timestampMs(request.from) : startOfDay(to);
  if (to < from) throw invalid(fields.to, `must not be before ${fields.from}`);
  const first = startOfDay(from);
  const count = (startOfDay(to) - first) / DAY_MS + 1;
  if (count > MAX_DAYS) throw invalid(fields.to, `must be less than ${MAX_DAYS} days after ${fields.from}`);
  return { from, to, days: Array.from({ length: count }, (_, i) => first + i * DAY_MS) };
}

const startOfDay = (time: number): number => Math.floor(time / DAY_MS) * DAY_MS;
