import type { JsonValue } from '@bufbuild/protobuf';
import type { ClientContext } from '../context.ts';
import { jsonText } from './text.ts';

/** Prints a value as JSON or as text, as the user chose. */
export function print({ output, terminal }: ClientContext, value: JsonValue, asText: () => string): void {
  terminal.out(output === 'json' ? jsonText(value, terminal.width !== undefined) : asText());
}
