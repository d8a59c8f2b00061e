import { fromBinary } from '@bufbuild/protobuf';
import type { DescriptorProto, EnumDescriptorProto, FileDescriptorProto } from '@bufbuild/protobuf/wkt';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';

/** A declaration: its fully qualified name, and its path in SourceCodeInfo (field numbers and indexes in turn). */
type Declaration = readonly [name: string, path: readonly number[]];

/** The leading comments of our own declarations, by fully qualified name. An enum value counts as a member of its enum. */
export function commentsOf(descriptors: Uint8Array): Record<string, string> {
  const comments: Record<string, string> = {};
  for (const file of fromBinary(FileDescriptorSetSchema, descriptors).file) {
    if (file.name.startsWith('google/')) continue;
    const texts = new Map(
      file.sourceCodeInfo?.location.map(({ path, leadingComments }) => [path.join('.'), leadingComments] as const),
    );
    for (const [name, path] of declarationsOf(file)) {
      const text = texts.get(path.join('.'));
      if (text) comments[name] = unwrap(text);
    }
  }
  return comments;
}

/** Joins the lines of each paragraph. */
const unwrap = (text: string): string =>
  text
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, ' '))
    .join('\n\n');

// The numbers below are those of the fields in google/protobuf/descriptor.proto.

function* declarationsOf(file: FileDescriptorProto): Generator<Declaration> {
  for (const [i, message] of file.messageType.entries()) yield* inMessage(message, file.package, [4, i]);
  for (const [i, enumeration] of file.enumType.entries()) yield* inEnum(enumeration, file.package, [5, i]);
  for (const [i, service] of file.service.entries()) {
    const name = `${file.package}.${service.name}`;
    yield [name, [6, i]];
    for (const [j, method] of service.method.entries()) yield [`${name}.${method.name}`, [6, i, 2, j]];
  }
}

function* inMessage(message: DescriptorProto, parent: string, path: readonly number[]): Generator<Declaration> {
  const name = `${parent}.${message.name}`;
  yield [name, path];
  for (const [i, field] of message.field.entries()) yield [`${name}.${field.name}`, [...path, 2, i]];
  for (const [i, oneof] of message.oneofDecl.entries()) yield [`${name}.${oneof.name}`, [...path, 8, i]];
  for (const [i, nested] of message.nestedType.entries()) yield* inMessage(nested, name, [...path, 3, i]);
  for (const [i, nested] of message.enumType.entries()) yield* inEnum(nested, name, [...path, 4, i]);
}

function* inEnum(enumeration: EnumDescriptorProto, parent: string, path: readonly number[]): Generator<Declaration> {
  const name = `${parent}.${enumeration.name}`;
  yield [name, path];
  for (const [i, value] of enumeration.value.entries()) yield [`${name}.${value.name}`, [...path, 2, i]];
}
