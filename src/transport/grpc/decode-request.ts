import { create, type DescMessage, fromBinary, type Message, mergeFromBinary } from '@bufbuild/protobuf';
import { invalid } from '../../base/errors.ts';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import { startSlices } from '../../base/slices.ts';
import { binaryParts, hasMoreBinaryValues } from '../../contract/binary-values.ts';
import { DEFAULT_MAX_VALUES, type Method } from '../../contract/method.ts';
import { tooManyValues } from '../../contract/too-many-values.ts';

/** A request of at most this many bytes is decoded at once, whatever it contains. */
const MAX_UNSLICED = 64 * 1024;
const PART_BYTES = 16 * 1024;
const OPTIONS = { readUnknownFields: false } as const;

/** Decodes a request message. Throws INVALID_ARGUMENT when it is malformed or has too many values. */
export function decodeRequest({ desc: { input }, maxValues }: Method, bytes: Buffer): MaybePromise<Message> {
  if (hasMoreBinaryValues(input, bytes, maxValues)) throw tooManyValues('request', maxValues);
  if (maxValues > DEFAULT_MAX_VALUES && bytes.length > MAX_UNSLICED) return decodeInSlices(input, bytes);
  try {
    return fromBinary(input, bytes, OPTIONS);
  } catch {
    throw malformed(input);
  }
}

async function decodeInSlices(type: DescMessage, bytes: Buffer): Promise<Message> {
  const message = create(type);
  const slices = startSlices();
  for (const part of binaryParts(bytes, PART_BYTES)) {
    if (slices.isOver()) await slices.next();
    try {
      mergeFromBinary(type, message, part, OPTIONS);
    } catch {
      throw malformed(type);
    }
  }
  return message;
}

const malformed = ({ typeName }: DescMessage) =>
  invalid('request', `must be a valid ${typeName} in protobuf encoding, with all text in UTF-8`);
