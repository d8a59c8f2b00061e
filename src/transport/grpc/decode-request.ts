import { type DescMessage, fromBinary, type Message } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { decodeInSlices } from '../../contract/binary-slices.ts';
import { hasMoreBinaryValues } from '../../contract/binary-values.ts';
import { DEFAULT_MAX_VALUES, type Method } from '../../contract/method.ts';
import { tooManyValues } from '../../contract/too-many-values.ts';

/** A request of at most this many bytes is decoded at once, whatever it contains. */
const MAX_UNSLICED = 64 * 1024;

/** Decodes a request message. Throws INVALID_ARGUMENT when it is malformed or has too many values. */
export function decodeRequest({ desc: { input }, maxValues }: Method, bytes: Buffer): MaybePromise<Message> {
  if (hasMoreBinaryValues(input, bytes, maxValues)) throw tooManyValues('request', maxValues);
  if (maxValues > DEFAULT_MAX_VALUES && bytes.length > MAX_UNSLICED) {
    return decodeInSlices(input, bytes).catch(() => {
      throw malformed(input);
    });
  }
  try {
    return fromBinary(input, bytes, { readUnknownFields: false });
  } catch {
    throw malformed(input);
  }
}

const malformed = ({ typeName }: DescMessage) =>
  invalid('request', `must be a valid ${typeName} in protobuf encoding, with all text in UTF-8`);
