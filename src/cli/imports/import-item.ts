import type { JsonValue } from '@bufbuild/protobuf';

/** Where a record was found: a file (`all.zip!GO-2024-1.json` for one in an archive) and, in JSON lines, the line. */
export interface SourceLocation {
  readonly file: string;
  readonly line?: number;
}

/** A record to send to the server. */
export interface ImportRecord<T extends JsonValue> {
  readonly location: SourceLocation;
  /** The id in the record. Records with the same id are sent one after the other. */
  readonly id: string;
  readonly record: T;
}

/** A record or file that was not imported, and why. */
export interface Refusal {
  readonly location: SourceLocation;
  /** The id in the record, empty if unknown. */
  readonly id: string;
  /** The invalid field, empty if the whole record is invalid. */
  readonly field: string;
  readonly reason: string;
}

export type ImportItem<T extends JsonValue> = ImportRecord<T> | Refusal;

export const isRefusal = (item: ImportItem<JsonValue>): item is Refusal => 'reason' in item;

export const locationText = ({ file, line }: SourceLocation): string => (line === undefined ? file : `${file}:${line}`);

/** `go.jsonl:12: CVE-2024-1: affected[0]: must be a mapping` */
export const refusalText = ({ location, id, field, reason }: Refusal): string =>
  [locationText(location), id, field, reason].filter((part) => part !== '').join(': ');
