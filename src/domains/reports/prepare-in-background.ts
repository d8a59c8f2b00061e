import { fromBinary } from '@bufbuild/protobuf';
import { createBackgroundThread, TaskLimitError } from '../../base/background-thread.ts';
import { ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { type MalformedFieldError, malformed } from '../../formats/strict-json.ts';
import type { PrepareResult, PrepareTask } from './prepare-report.task.ts';
import { MAX_REPORT_BYTES, type PreparedReport } from './prepare-report.ts';

// Parsing a report of 25 MB takes about a second, and JSON.parse cannot be divided into slices.
const thread = createBackgroundThread<PrepareTask, PrepareResult>(
  new URL('./prepare-report.task.ts', import.meta.url),
  { taskMs: 30_000 },
);

/** A report, or what is wrong with it, and the size of its text. */
export interface PreparedText {
  readonly report: PreparedReport | MalformedFieldError;
  readonly textBytes: number;
}

/**
 * Parses a report, which may be compressed, in a background thread. Returns undefined if its text has more than
 * `maxBytes`.
 */
export async function prepareInBackground(
  content: Uint8Array,
  now: number,
  maxBytes = MAX_REPORT_BYTES,
): Promise<PreparedText | undefined> {
  let result: PrepareResult;
  try {
    result = await thread.run({ content, now, maxBytes });
  } catch (error) {
    if (!(error instanceof TaskLimitError)) throw error;
    return { report: malformed('', 'takes too long to parse; leave out what is not needed'), textBytes: maxBytes };
  }
  if ('isTooLong' in result) return undefined;
  const { textBytes } = result;
  if ('malformed' in result) return { report: malformed(result.malformed.field, result.malformed.reason), textBytes };
  const { message, digests, columns } = result;
  return { report: { message: fromBinary(ReportSchema, message), digests, columns }, textBytes };
}
