import type { Clock } from '../base/clock.ts';
import type { Blobs } from './blobs.ts';
import { anyOrderCases } from './suite-any-order.testing.ts';
import { blobCases } from './suite-blobs.testing.ts';
import { uploadCases } from './suite-uploads.testing.ts';

/** A place to store blobs, empty at first. */
export interface Storage {
  /** Called again, it is what a restart of the server sees. */
  open(clock?: Clock): Promise<Blobs>;
  remove(): Promise<void>;
}

/** What every driver has to do. */
export function blobsSuite(name: string, create: () => Promise<Storage>): void {
  blobCases(name, create);
  uploadCases(name, create);
  anyOrderCases(name, create);
}
