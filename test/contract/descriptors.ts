import type { DescEnum, DescField, DescFile, DescMessage } from '@bufbuild/protobuf';
import { getOption, hasOption, ScalarType } from '@bufbuild/protobuf';
import { Capability } from '../../src/contract/gen/capabilities/capabilities_pb.js';
import { FieldBehavior } from '../../src/contract/gen/google/api/field_behavior_pb.js';
import { resource, resource_reference } from '../../src/contract/gen/google/api/resource_pb.js';
import { scope } from '../../src/contract/gen/wharfinger/options/v1/options_pb.js';
import type { EventSpec } from '../../src/contract/method.ts';
import { methodTable } from '../../src/contract/method-table.ts';
import { fieldOptions } from '../../src/contract/options.ts';
import type { Declarations } from './recorded-contract.ts';

/** The same as `declarationsOfRecord`, for the descriptors of this project. */
export function declarationsOfDescriptors(files: readonly DescFile[]): Declarations {
  const declarations: Declarations = new Map();
  for (const file of files) {
    declarations.set(pathOf(file), { package: file.proto.package });
    for (const service of file.services) declarations.set(service.typeName, { file: pathOf(file) });
    for (const message of file.messages) addMessage(declarations, message);
    for (const enumeration of file.enums) addEnum(declarations, enumeration);
  }
  for (const method of methodTable(files)) {
    declarations.set(method.id, {
      input: method.desc.input.typeName,
      output: method.desc.output.typeName,
      routes: method.routes,
      // The recorded contract does not distinguish public methods that accept a token.
      access: method.access === 'optional' ? 'public' : method.access,
      capabilities: method.capabilities.map((capability) => Capability[capability]),
      scope: method.scope.join('.'),
      event: method.event && eventOf(method.event),
    });
  }
  return declarations;
}

/** The recorded contract does not say which capabilities it takes to receive an event. */
const eventOf = ({ type, extensions, audience }: EventSpec) => ({
  type,
  extensions,
  audience: audience.toUpperCase(),
});

const pathOf = (file: DescFile): string => `${file.name}.proto`;

function addMessage(declarations: Declarations, message: DescMessage): void {
  declarations.set(message.typeName, {
    file: pathOf(message.file),
    oneofs: message.oneofs.map((oneof) => oneof.name),
    // A range ends before its `end`.
    reservedNumbers: message.proto.reservedRange.flatMap(({ start, end }) =>
      Array.from({ length: end - start }, (_, i) => start + i),
    ),
    reservedNames: message.proto.reservedName,
    deprecated: message.deprecated,
    resource: resourceOf(message),
  });
  for (const field of message.fields) {
    declarations.set(`${message.typeName}.${field.name}`, {
      number: field.number,
      type: typeOf(field),
      label: labelOf(field),
      oneof: field.oneof?.name,
      jsonName: field.jsonName,
      behaviors: fieldOptions(field).fieldBehavior.map((behavior) => FieldBehavior[behavior]),
      scope: getOption(field, scope),
      redacted: field.proto.options?.debugRedact ?? false,
      deprecated: field.deprecated,
      reference: hasOption(field, resource_reference) ? getOption(field, resource_reference).type : undefined,
    });
  }
  for (const nested of message.nestedMessages) addMessage(declarations, nested);
  for (const nested of message.nestedEnums) addEnum(declarations, nested);
}

function resourceOf(message: DescMessage): object | undefined {
  if (!hasOption(message, resource)) return undefined;
  const { type, pattern, plural, singular } = getOption(message, resource);
  return { type, pattern, plural, singular };
}

function typeOf(field: DescField): string {
  if (field.message) return field.message.typeName;
  if (field.enum) return field.enum.typeName;
  return nameOf(field.scalar);
}

function labelOf(field: DescField): string | null {
  if (field.fieldKind === 'map') return `map<${nameOf(field.mapKey)},${typeOf(field)}>`;
  if (field.fieldKind === 'list') return 'repeated';
  return field.proto.proto3Optional ? 'optional' : null;
}

const nameOf = (scalar: ScalarType): string => ScalarType[scalar].toLowerCase();

function addEnum(declarations: Declarations, enumeration: DescEnum): void {
  declarations.set(enumeration.typeName, {
    file: pathOf(enumeration.file),
    values: enumeration.values.map(({ name, number }) => `${name} = ${number}`),
    // In an enum, a range includes its `end`.
    reservedNumbers: enumeration.proto.reservedRange.flatMap(({ start, end }) =>
      Array.from({ length: end - start + 1 }, (_, i) => start + i),
    ),
  });
}
