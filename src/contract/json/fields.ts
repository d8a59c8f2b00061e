import type { DescField, Message } from '@bufbuild/protobuf';

/**
 * A message as a record of its fields. protobuf-es stores fields as plain properties, and a oneof as `{ case, value }`.
 */
export type Fields = Message & Record<string, unknown>;

/** The value of a field; undefined when it is not set. */
export function readField(message: Fields, { localName, oneof }: DescField): unknown {
  if (oneof === undefined) return message[localName];
  const chosen = message[oneof.localName] as { case?: string; value?: unknown };
  return chosen.case === localName ? chosen.value : undefined;
}
