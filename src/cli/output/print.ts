import type { JsonValue } from '@bufbuild/protobuf';
import type { Context } from '../context.ts';
import { jsonText } from './text.ts';

/** Prints an answer: as the API gave it, or in words for a person. */
export function print({ output, terminal }: Context, answer: JsonValue, inWords: () => string): void {
  terminal.out(output === 'json' ? jsonText(answer, terminal.width !== undefined) : inWords());
}
