import type { Clock } from '../base/clock.ts';
import type { Blobs } from './blobs.ts';

/** A storage for blobs under test, empty at first. */
export interface TestStorage {
  /** Opens it as a starting server does. It may be opened again, as after a restart. */
  open(clock?: Clock): Promise<Blobs>;
  remove(): Promise<void>;
}
