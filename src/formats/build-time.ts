import { isTime } from './reading.ts';

const EARLIEST = Date.UTC(1981, 0, 1);
/** What flit and hatchling write into every file, so that two builds of the same sources are the same. */
const MADE_UP: readonly number[] = [Date.UTC(2016, 0, 1), Date.UTC(2020, 1, 2)];

/** The time of an archive entry, unless it is there only because something must be. */
export const buildTime = (time: number): number | undefined =>
  isTime(time) && time >= EARLIEST && !MADE_UP.includes(time) ? time : undefined;
