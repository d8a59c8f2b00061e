import type { JsonValue } from '@bufbuild/protobuf';

/** Where a record was found: a file (`all.zip!GO-2024-1.json` for one in an archive) and, in JSON lines, which line. */
export interface Origin {
  readonly file: string;
  readonly line?: number;
}

/** A record that was read, as it goes over the wire. */
export interface Taken<T extends JsonValue> {
  readonly origin: Origin;
  /** What the record calls itself. Two with the same id are never under way at the same time. */
  readonly id: string;
  readonly record: T;
}

/** Something that was not taken, and why. */
export interface Refused {
  readonly origin: Origin;
  /** What it calls itself, where it does. */
  readonly id: string;
  /** The field at fault; empty when the whole is. */
  readonly field: string;
  readonly reason: string;
}

export type Item<T extends JsonValue> = Taken<T> | Refused;

export const isRefused = (item: Item<JsonValue>): item is Refused => 'reason' in item;

export const originText = ({ file, line }: Origin): string => (line === undefined ? file : `${file}:${line}`);

/** `go.jsonl:12: CVE-2024-1: affected[0]: must be a mapping` */
export const refusalText = ({ origin, id, field, reason }: Refused): string =>
  [originText(origin), id, field, reason].filter((part) => part !== '').join(': ');
