import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';

// Reads the structure of an encoded message without decoding its values. A message that is not valid is read as far as
// possible: decoding it fails afterwards.

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

/**
 * Whether an encoded message has more than `max` values: fields, list items and map entries at all depths. It is
 * checked before the message is decoded, because a value takes two bytes on the wire and a hundred in memory.
 */
export function hasMoreBinaryValues(desc: DescMessage, bytes: Uint8Array, max: number): boolean {
  // Every value takes a byte or more.
  return bytes.length > max && countValues(desc, new WireReader(bytes, 0, bytes.length), max, 0) > max;
}

/** Deeper messages fail to decode. */
const MAX_DEPTH = 100;

/** Counts until the number exceeds `max`. */
function countValues(desc: DescMessage | undefined, reader: WireReader, max: number, depth: number): number {
  const fields = desc && fieldsByNumber(desc);
  let count = 0;
  while (reader.nextField()) {
    count++;
    const field = reader.wireType === LENGTH_DELIMITED ? fields?.get(reader.fieldNumber) : undefined;
    if (field?.message !== undefined && depth < MAX_DEPTH) {
      // An entry of a map is itself encoded as a message, with the value as its field 2.
      const inner = field.fieldKind === 'map' ? undefined : field.message;
      if (inner) count += countValues(inner, reader.content(), max - count, depth + 1);
      else count += countMapEntry(field.message, reader.content(), max - count, depth + 1);
    } else if (field?.fieldKind === 'list' && field.listKind !== 'message' && isPackable(field)) {
      count += reader.countPacked(packedSize(field));
    }
    if (count > max) break;
  }
  return count;
}

function countMapEntry(value: DescMessage, reader: WireReader, max: number, depth: number): number {
  let count = 0;
  while (count <= max && reader.nextField()) {
    if (reader.fieldNumber === 2 && reader.wireType === LENGTH_DELIMITED) {
      count += countValues(value, reader.content(), max - count, depth);
    }
  }
  return count;
}

/**
 * Divides an encoded message into parts of about `size` bytes. Each part is itself an encoded message, and merging all
 * parts gives the whole: https://protobuf.dev/programming-guides/encoding/#last-one-wins. A field is never divided.
 */
export function* binaryParts(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  const reader = new WireReader(bytes, 0, bytes.length);
  let start = 0;
  while (reader.nextField()) {
    if (reader.at - start < size) continue;
    yield bytes.subarray(start, reader.at);
    start = reader.at;
  }
  // Also what could not be read, so that decoding it fails.
  if (start < bytes.length) yield bytes.subarray(start);
}

class WireReader {
  fieldNumber = 0;
  wireType = 0;
  /** The index after the field that was read. */
  at: number;
  private readonly bytes: Uint8Array;
  private readonly end: number;
  private contentStart = 0;

  constructor(bytes: Uint8Array, start: number, end: number) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Reads the next field. Returns false at the end, and where the message is not valid. */
  nextField(): boolean {
    if (this.at >= this.end) return false;
    const tag = this.varint();
    this.fieldNumber = Math.floor(tag / 8);
    this.wireType = tag % 8;
    switch (this.wireType) {
      case VARINT:
        this.varint();
        break;
      case FIXED64:
        this.at += 8;
        break;
      case FIXED32:
        this.at += 4;
        break;
      case LENGTH_DELIMITED: {
        const length = this.varint();
        this.contentStart = this.at;
        this.at += length;
        break;
      }
    }
    // The tags of a group have no content. Their fields are read as if they were fields of the message.
    return this.at <= this.end && this.wireType <= FIXED32;
  }

  /** A reader of the content of the length-delimited field that was read. */
  content(): WireReader {
    return new WireReader(this.bytes, this.contentStart, this.at);
  }

  /** The number of values in the packed list that was read. `size` is that of each, or 0 for varints. */
  countPacked(size: number): number {
    if (size > 0) return Math.floor((this.at - this.contentStart) / size);
    let count = 0;
    for (let at = this.contentStart; at < this.at; at++) if ((this.bytes[at] as number) < 0x80) count++;
    return count;
  }

  private varint(): number {
    let value = 0;
    let factor = 1;
    for (let length = 0; length < 10; length++) {
      // After the end, the byte is undefined and the field ends beyond the message.
      const byte = this.bytes[this.at++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    return Number.POSITIVE_INFINITY;
  }
}

const fieldMaps = new WeakMap<DescMessage, ReadonlyMap<number, DescField>>();

function fieldsByNumber(desc: DescMessage): ReadonlyMap<number, DescField> {
  let fields = fieldMaps.get(desc);
  if (fields === undefined) {
    fields = new Map(desc.fields.map((field) => [field.number, field]));
    fieldMaps.set(desc, fields);
  }
  return fields;
}

const isPackable = ({ scalar }: DescField): boolean => scalar !== ScalarType.STRING && scalar !== ScalarType.BYTES;

/** The size of a value in a packed list. Zero for a varint. */
function packedSize({ scalar }: DescField): number {
  switch (scalar) {
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return 8;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return 4;
    default:
      return 0;
  }
}
