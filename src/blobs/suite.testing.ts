import type { TestStorage } from './storage.testing.ts';
import { anyOrderCases } from './suite-any-order.testing.ts';
import { blobCases } from './suite-blobs.testing.ts';
import { uploadCases } from './suite-uploads.testing.ts';

/** The tests that every implementation of Blobs must pass. */
export function blobsSuite(name: string, create: () => Promise<TestStorage>): void {
  blobCases(name, create);
  uploadCases(name, create);
  anyOrderCases(name, create);
}
