import { toBinary } from '@bufbuild/protobuf';
import { ReportSchema } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { MalformedFieldError } from '../../formats/strict-json.ts';
import { type PreparedReport, prepareReport, unpackReport } from './prepare-report.ts';

export interface PrepareTask {
  readonly content: Uint8Array;
  readonly now: number;
  /** The most bytes that the text of the report may have. */
  readonly maxBytes: number;
}

/** The result has messages encoded and errors as plain fields, because both lose their type between threads. */
export type PrepareResult = {
  /** The size of the text; zero if it could not be unpacked. */
  readonly textBytes: number;
} & (
  | (Omit<PreparedReport, 'message'> & { readonly message: Uint8Array })
  | { readonly malformed: { readonly field: string; readonly reason: string } }
  /** The text has more than `maxBytes`. */
  | { readonly isTooLong: true }
);

/** Runs in a background thread. */
export async function run({ content, now, maxBytes }: PrepareTask): Promise<PrepareResult> {
  let textBytes = 0;
  try {
    const text = await unpackReport(content);
    textBytes = text.length;
    if (textBytes > maxBytes) return { textBytes, isTooLong: true };
    const { message, ...rest } = await prepareReport(text, now);
    return { ...rest, textBytes, message: toBinary(ReportSchema, message) };
  } catch (error) {
    if (!(error instanceof MalformedFieldError)) throw error;
    return { textBytes, malformed: { field: error.field, reason: error.reason } };
  }
}
