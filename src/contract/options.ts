import type { Message } from '@bufbuild/protobuf';
import { fromBinary, getExtension, ScalarType } from '@bufbuild/protobuf';
import type { GenExtension } from '@bufbuild/protobuf/codegenv2';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

type UnknownField = NonNullable<Message['$unknown']>[number];

/**
 * What an option says about a descriptor; nothing where it is not set. `getOption` makes a type of its own for each look,
 * which took a tenth of every start: here the kinds of options that the contract has are read as they are.
 */
export function optionOf<Extendee extends Message, Value>(
  element: { readonly proto: { readonly options?: Extendee | undefined } },
  option: GenExtension<Extendee, Value>,
): Value | undefined {
  const { options } = element.proto;
  const found = options?.$unknown?.filter(({ no }) => no === option.number) ?? [];
  const [last] = found.slice(-1);
  if (options === undefined || last === undefined) return undefined;
  return (read(option, found, last) ?? getExtension(options, option)) as Value;
}

/** Nothing for other kinds. */
function read(option: GenExtension, found: readonly UnknownField[], last: UnknownField): unknown {
  if (option.fieldKind === 'message') {
    return fromBinary(option.message, Buffer.concat(found.map(({ data }) => new BinaryReader(data).bytes())));
  }
  if (option.fieldKind === 'list') return option.listKind === 'enum' ? found.flatMap(numbersIn) : undefined;
  const reader = new BinaryReader(last.data);
  switch (option.scalar) {
    case ScalarType.STRING:
      return reader.string();
    case ScalarType.BOOL:
      return reader.bool();
    case ScalarType.UINT32:
      return reader.uint32();
    default:
      return undefined;
  }
}

/** One by one or packed, as protobuf allows for both. */
function numbersIn({ wireType, data }: UnknownField): number[] {
  const reader = new BinaryReader(data);
  const end = wireType === WireType.LengthDelimited ? reader.uint32() + reader.pos : reader.len;
  const numbers: number[] = [];
  while (reader.pos < end) numbers.push(reader.int32());
  return numbers;
}
