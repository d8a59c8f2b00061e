import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromBinary, isFieldSet, toBinary } from '@bufbuild/protobuf';
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FieldDescriptorProtoSchema,
  FieldDescriptorProto_Type as FieldType,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import { v2Files } from '../../src/contract/gen/files.js';
import { files } from '../../src/contract/method-table.ts';
import { v2beta1Files } from '../../src/contract/v2beta1.ts';
import { withDependencies } from '../../src/transport/grpc/descriptor-index.ts';

// The descriptors as a client receives them. The rules are those of the descriptor pools of C++ and Python, which refuse
// a file that breaks one of them; the pool of JavaScript accepts all of it.

const reflected = [...withDependencies([...files, ...v2beta1Files(v2Files)])].map(({ proto }) =>
  fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, proto)),
);

const NAMED_TYPES: ReadonlySet<FieldType> = new Set([FieldType.MESSAGE, FieldType.GROUP, FieldType.ENUM]);

interface DeclaredField {
  readonly name: string;
  readonly field: FieldDescriptorProto;
}

function* messagesOf(file: FileDescriptorProto): Generator<{ name: string; message: DescriptorProto }> {
  function* below(scope: string, messages: readonly DescriptorProto[]): ReturnType<typeof messagesOf> {
    for (const message of messages) {
      const name = `${scope}.${message.name}`;
      yield { name, message };
      yield* below(name, message.nestedType);
    }
  }
  yield* below(file.package && `.${file.package}`, file.messageType);
}

function* fieldsOf(file: FileDescriptorProto): Generator<DeclaredField> {
  for (const field of file.extension) yield { name: `${file.name}: extension ${field.name}`, field };
  for (const { name, message } of messagesOf(file)) {
    for (const field of [...message.field, ...message.extension]) yield { name: `${name}.${field.name}`, field };
  }
}

/** The names of the messages and enums that a file declares, each with a dot in front. */
function typesOf(file: FileDescriptorProto): string[] {
  const scope = file.package && `.${file.package}`;
  const messages = [...messagesOf(file)];
  return [
    ...messages.map(({ name }) => name),
    ...messages.flatMap(({ name, message }) => message.enumType.map((nested) => `${name}.${nested.name}`)),
    ...file.enumType.map(({ name }) => `${scope}.${name}`),
  ];
}

const byName = new Map(reflected.map((file) => [file.name, file]));

/** The types that a file can name: its own, those of its imports, and those that the imports import publicly. */
function visibleTypes(file: FileDescriptorProto): ReadonlySet<string> {
  const visible = new Set(typesOf(file));
  const addImport = (name: string): void => {
    const imported = byName.get(name);
    if (!imported) return;
    for (const type of typesOf(imported)) visible.add(type);
    for (const index of imported.publicDependency) addImport(imported.dependency[index] ?? '');
  };
  file.dependency.forEach(addImport);
  return visible;
}

test('every file that reflection returns comes with its imports, and no two have the same name', () => {
  const missing = reflected.flatMap((file) =>
    file.dependency.filter((name) => !byName.has(name)).map((name) => `${file.name} imports ${name}`),
  );
  assert.deepEqual(missing, []);
  assert.equal(byName.size, reflected.length);
});

test('no type is declared twice', () => {
  const types = reflected.flatMap(typesOf);
  assert.deepEqual(
    types.filter((type, i) => types.indexOf(type) !== i),
    [],
  );
});

test('fields of messages and enums name their type, which the file can see, and all other fields name none', (t) => {
  const problems: string[] = [];
  let count = 0;
  for (const file of reflected) {
    const visible = visibleTypes(file);
    for (const { name, field } of fieldsOf(file)) {
      count++;
      const isNamed = isFieldSet(field, FieldDescriptorProtoSchema.field.typeName);
      if (isNamed !== NAMED_TYPES.has(field.type)) problems.push(`${name}: ${isNamed ? 'a' : 'no'} type name`);
      else if (isNamed && !visible.has(field.typeName)) problems.push(`${name}: ${field.typeName} is not imported`);
      const { extendee } = field;
      const isExtension = isFieldSet(field, FieldDescriptorProtoSchema.field.extendee);
      if (isExtension && !visible.has(extendee)) problems.push(`${name}: ${extendee} is not imported`);
    }
  }
  assert.deepEqual(problems, []);
  t.diagnostic(`${reflected.length} files, ${count} fields`);
});

test('methods name messages that their file can see', () => {
  const problems = reflected.flatMap((file) => {
    const visible = visibleTypes(file);
    return file.service.flatMap(({ method }) =>
      method.flatMap(({ name, inputType, outputType }) =>
        [inputType, outputType].filter((type) => !visible.has(type)).map((type) => `${name}: ${type}`),
      ),
    );
  });
  assert.deepEqual(problems, []);
});

test('every field has its JSON name, and no two fields of a message have the same one', () => {
  const problems: string[] = [];
  for (const file of reflected) {
    for (const { name, message } of messagesOf(file)) {
      const jsonNames = message.field.map(({ jsonName }) => jsonName);
      if (new Set(jsonNames).size !== jsonNames.length) problems.push(`${name}: two fields have the same JSON name`);
      for (const field of message.field) {
        const expected = EXPLICIT_JSON_NAMES.get(field.name) ?? lowerCamelCase(field.name);
        if (field.jsonName !== expected && field.jsonName !== lowerCamelCase(field.name)) {
          problems.push(`${name}.${field.name}: ${field.jsonName}`);
        }
      }
    }
  }
  assert.deepEqual(problems, []);
});

/** Fields whose name in JSON is declared in the contract. */
const EXPLICIT_JSON_NAMES = new Map([['sync_config', 'sync_config']]);

/** The JSON name that a field has by default. */
const lowerCamelCase = (name: string): string =>
  name.replaceAll(/_+(.?)/g, (_, letter: string) => letter.toUpperCase());

test('a field in a oneof names one that its message declares', () => {
  const problems = reflected.flatMap((file) =>
    [...messagesOf(file)].flatMap(({ name, message }) =>
      message.field
        .filter((field) => isFieldSet(field, FieldDescriptorProtoSchema.field.oneofIndex))
        .filter(({ oneofIndex }) => message.oneofDecl[oneofIndex] === undefined)
        .map((field) => `${name}.${field.name}`),
    ),
  );
  assert.deepEqual(problems, []);
});
