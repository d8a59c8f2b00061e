import { readFileSync } from 'node:fs';

/** The API contract that existing clients are built on, as recorded in test/data. */
export interface RecordedContract {
  domains: Record<string, { files: Record<string, RecordedFile> }>;
}

interface RecordedFile {
  package: string;
  services: Record<string, { full_name: string; methods: RecordedMethod[] }>;
  messages: Record<string, RecordedMessage>;
  enums: Record<string, RecordedEnum>;
}

interface RecordedMethod {
  name: string;
  input: string;
  output: string;
  http: (RecordedRoute & { additional_bindings?: RecordedRoute[] }) | null;
  iam_mode: string;
  capabilities: string[];
  unscoped: boolean;
  iam_disabled: boolean;
  scope_fields: string[];
  event: { type: string; extensions: string[]; audience: string } | null;
}

interface RecordedRoute {
  verb: string;
  path: string;
  body: string | null;
}

interface RecordedMessage {
  full_name: string;
  fields: RecordedField[];
  oneofs?: string[];
  reserved_numbers?: ReservedNumbers[];
  reserved_names?: string[];
  deprecated?: boolean;
  resource?: { type: string; pattern: string[]; plural: string; singular: string };
  messages?: Record<string, RecordedMessage>;
  enums?: Record<string, RecordedEnum>;
}

interface RecordedField {
  name: string;
  number: number;
  type: string;
  label: string | null;
  oneof?: string;
  json_name?: string;
  field_behavior: string[];
  iam_scope: boolean;
  debug_redact: boolean;
  deprecated?: boolean;
  resource_reference?: { type: string };
}

interface RecordedEnum {
  full_name: string;
  values: { name: string; number: number }[];
  reserved_numbers?: ReservedNumbers[];
}

/** A number, or a range such as `3-6`. */
type ReservedNumbers = number | string;

export const readRecordedContract = (name: 'v1' | 'v2'): RecordedContract =>
  JSON.parse(readFileSync(new URL(`../data/${name}.json`, import.meta.url), 'utf8'));

/** The ids of the methods, such as `chainguard.platform.iam.Groups/Create`. */
export const methodIdsOf = ({ domains }: RecordedContract): string[] =>
  Object.values(domains)
    .flatMap(({ files }) => Object.values(files).flatMap(({ services }) => Object.values(services)))
    .flatMap(({ full_name, methods }) => methods.map(({ name }) => `${full_name}/${name}`));

/** All properties of each file, service, method, message, field and enum, by its full name. */
export type Declarations = Map<string, unknown>;

export function declarationsOfRecord(recorded: RecordedContract): Declarations {
  const declarations: Declarations = new Map();
  for (const { files } of Object.values(recorded.domains)) {
    for (const [path, file] of Object.entries(files)) {
      declarations.set(path, { package: file.package });
      for (const service of Object.values(file.services)) addService(declarations, service, path);
      for (const message of Object.values(file.messages)) addMessage(declarations, message, path);
      for (const enumeration of Object.values(file.enums)) addEnum(declarations, enumeration, path);
    }
  }
  return declarations;
}

function addService(
  declarations: Declarations,
  service: { full_name: string; methods: RecordedMethod[] },
  file: string,
): void {
  declarations.set(service.full_name, { file });
  for (const method of service.methods) {
    declarations.set(`${service.full_name}/${method.name}`, {
      input: method.input,
      output: method.output,
      routes: routesOf(method).map(({ verb, path, body }) => ({ verb, template: path, body: body ?? undefined })),
      access: accessOf(method),
      capabilities: method.capabilities,
      scope: method.scope_fields.join(),
      event: method.event ?? undefined,
    });
  }
}

const routesOf = ({ http }: RecordedMethod): RecordedRoute[] =>
  http ? [http, ...(http.additional_bindings ?? [])] : [];

/** A method without an iam option is public. One without capabilities and scope accepts any valid token. */
function accessOf({ iam_mode, iam_disabled, unscoped, capabilities, scope_fields }: RecordedMethod): string {
  if (iam_disabled || iam_mode === 'absent') return 'public';
  return unscoped || (capabilities.length === 0 && scope_fields.length === 0) ? 'unscoped' : 'scoped';
}

function addMessage(declarations: Declarations, message: RecordedMessage, file: string): void {
  declarations.set(message.full_name, {
    file,
    oneofs: message.oneofs ?? [],
    reservedNumbers: expandReserved(message.reserved_numbers),
    reservedNames: message.reserved_names ?? [],
    deprecated: message.deprecated ?? false,
    resource: message.resource,
  });
  for (const field of message.fields) {
    declarations.set(`${message.full_name}.${field.name}`, {
      number: field.number,
      type: field.type,
      label: field.label,
      oneof: field.oneof,
      jsonName: field.json_name ?? camelCase(field.name),
      behaviors: field.field_behavior,
      scope: field.iam_scope,
      redacted: field.debug_redact,
      deprecated: field.deprecated ?? false,
      reference: field.resource_reference?.type,
    });
  }
  for (const nested of Object.values(message.messages ?? {})) addMessage(declarations, nested, file);
  for (const nested of Object.values(message.enums ?? {})) addEnum(declarations, nested, file);
}

function addEnum(declarations: Declarations, enumeration: RecordedEnum, file: string): void {
  declarations.set(enumeration.full_name, {
    file,
    values: enumeration.values.map(({ name, number }) => `${name} = ${number}`),
    reservedNumbers: expandReserved(enumeration.reserved_numbers),
  });
}

function expandReserved(ranges: readonly ReservedNumbers[] = []): number[] {
  return ranges.flatMap((range) => {
    const [first = NaN, last = first] = String(range).split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** The JSON name that protoc gives a field without a `json_name` option. */
const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
