import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { encodeJson, type ResponseForm } from './json/encode.ts';
import { encodeJsonInSlices } from './json/encode-slices.ts';
import { isLarge } from './large-message.ts';

/*
 * A message whose only field is a list can be sent in parts. Each part is a message of the same type with some of the
 * items. In protobuf the concatenated encodings of the parts are the encoding of the whole message
 * (https://protobuf.dev/programming-guides/encoding/#last-one-wins). In JSON the items of all parts are written into
 * one array.
 */

/** The only field of a message, if it is a list of messages. Undefined for a page, which also has a page token. */
export function soleListField({ fields: [first, ...others] }: DescMessage): DescField | undefined {
  return first?.fieldKind === 'list' && first.message && others.length === 0 ? first : undefined;
}

/** The JSON text of a message that is sent in parts. */
export interface ListJsonStream {
  /** The next piece of the text, with the items of a part. */
  next(part: Message): MaybePromise<string>;
  /** The rest of the text, with the items of the last part. */
  end(part: Message): Promise<string>;
}

export function streamListJson(desc: DescMessage, list: DescField, form: ResponseForm = 'v2'): ListJsonStream {
  const head = `{"${list.jsonName}":[`;
  const tail = ']}';
  let separator = head;
  const next = (part: Message): MaybePromise<string> => {
    const items = (part as unknown as Record<string, unknown[]>)[list.localName];
    if (!items?.length) return '';
    const start = separator;
    separator = ',';
    const itemsIn = (text: string): string => start + text.slice(head.length, -tail.length);
    if (isLarge(desc, part)) return encodeJsonInSlices(desc, part, form).then(itemsIn);
    return itemsIn(encodeJson(desc, part, form));
  };
  return {
    next,
    async end(part) {
      const last = await next(part);
      return (separator === head ? head : last) + tail;
    },
  };
}
