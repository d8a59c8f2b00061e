import type { DescField, Message } from '@bufbuild/protobuf';

/** A message seen as its fields. protobuf-es keeps them as plain properties, a oneof as `{ case, value }`. */
export type Fields = Message & Record<string, unknown>;

/** What a field holds; undefined when it is unset. */
export function readField(message: Fields, { localName, oneof }: DescField): unknown {
  if (oneof === undefined) return message[localName];
  const chosen = message[oneof.localName] as { case?: string; value?: unknown };
  return chosen.case === localName ? chosen.value : undefined;
}
