import { isApiTime } from '../api-time.ts';

const EARLIEST = Date.UTC(1981, 0, 1);
/** The fixed times that flit and hatchling write for reproducible builds. */
const PLACEHOLDERS: readonly number[] = [Date.UTC(2016, 0, 1), Date.UTC(2020, 1, 2)];

/** The time of an archive entry. Undefined if it is a placeholder. */
export const buildTimeOf = (time: number): number | undefined =>
  isApiTime(time) && time >= EARLIEST && !PLACEHOLDERS.includes(time) ? time : undefined;
