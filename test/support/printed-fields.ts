import type { DescField, DescMessage, JsonObject, JsonValue } from '@bufbuild/protobuf';

/**
 * Returns the paths of fields that grpc-gateway would have printed and the JSON of a message does not have: all except
 * those of a oneof and those that are marked `optional`.
 */
export function missingFields(desc: DescMessage, json: JsonValue, path: string = desc.name): string[] {
  if (desc.typeName.startsWith('google.protobuf.') || json === null) return [];
  const fields = json as JsonObject;
  return desc.fields.flatMap((field): string[] => {
    const value = fields[field.jsonName];
    const fieldPath = `${path}.${field.name}`;
    if (value === undefined) return hasPresence(field) ? [] : [fieldPath];
    if (!isPrintedAs(field, value)) return [`${fieldPath} is ${JSON.stringify(value)}`];
    return nestedMessages(field, value).flatMap((nested) =>
      missingFields(field.message as DescMessage, nested, fieldPath),
    );
  });
}

const hasPresence = ({ oneof, proto }: DescField): boolean => oneof !== undefined || proto.proto3Optional;

/** Null stands for a message that is not set, and for nothing else. */
function isPrintedAs({ fieldKind }: DescField, value: JsonValue): boolean {
  if (fieldKind === 'list') return Array.isArray(value);
  return fieldKind === 'message' || value !== null;
}

function nestedMessages({ fieldKind, message }: DescField, value: JsonValue): readonly JsonValue[] {
  if (!message) return [];
  if (fieldKind === 'list') return value as JsonValue[];
  return fieldKind === 'map' ? Object.values(value as JsonObject) : [value];
}
