import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { encodeJson } from './json/encode.ts';

/*
 * A message that is nothing but a list can be sent in parts, each a message of its type with some of the items. In protobuf
 * the encodings of the parts, one after the other, are an encoding of the whole
 * (https://protobuf.dev/programming-guides/encoding/#last-one-wins); in JSON the parts share one array.
 */

/** The list that a message consists of, if it can be divided. A page that has a token for the next one cannot. */
export function soleListField({ fields: [first, ...others] }: DescMessage): DescField | undefined {
  return first?.fieldKind === 'list' && first.message && others.length === 0 ? first : undefined;
}

/** The JSON text of a message that comes in parts. */
export interface ListJsonStream {
  /** What comes next, with the items of this part. */
  next(part: Message): string;
  /** The same up to the end, with the items of the last part. */
  end(part: Message): string;
}

export function streamListJson(desc: DescMessage, list: DescField): ListJsonStream {
  const head = `{"${list.jsonName}":[`;
  const tail = ']}';
  let before = head;
  const next = (part: Message): string => {
    const items = (part as unknown as Record<string, unknown[]>)[list.localName];
    // JSON leaves out an empty list altogether.
    if (!items?.length) return '';
    const text = before + encodeJson(desc, part).slice(head.length, -tail.length);
    before = ',';
    return text;
  };
  return {
    next,
    end(part) {
      const last = next(part);
      return (before === head ? head : last) + tail;
    },
  };
}
