import { readFileSync } from 'node:fs';

/** The wire contract that existing clients are built on, as recorded in test/data. */
export interface Facts {
  domains: Record<string, { files: Record<string, FileFacts> }>;
}

interface FileFacts {
  package: string;
  services: Record<string, { full_name: string; methods: MethodFacts[] }>;
  messages: Record<string, MessageFacts>;
  enums: Record<string, EnumFacts>;
}

interface MethodFacts {
  name: string;
  input: string;
  output: string;
  http: (RouteFacts & { additional_bindings?: RouteFacts[] }) | null;
  iam_mode: string;
  capabilities: string[];
  unscoped: boolean;
  iam_disabled: boolean;
  scope_fields: string[];
  event: { type: string; extensions: string[]; audience: string } | null;
}

interface RouteFacts {
  verb: string;
  path: string;
  body: string | null;
}

interface MessageFacts {
  full_name: string;
  fields: FieldFacts[];
  oneofs?: string[];
  reserved_numbers?: ReservedFacts[];
  reserved_names?: string[];
  deprecated?: boolean;
  resource?: { type: string; pattern: string[]; plural: string; singular: string };
  messages?: Record<string, MessageFacts>;
  enums?: Record<string, EnumFacts>;
}

interface FieldFacts {
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

interface EnumFacts {
  full_name: string;
  values: { name: string; number: number }[];
  reserved_numbers?: ReservedFacts[];
}

/** A number, or a range such as `3-6`. */
type ReservedFacts = number | string;

export const readFacts = (name: 'v1' | 'v2'): Facts =>
  JSON.parse(readFileSync(new URL(`../data/${name}.json`, import.meta.url), 'utf8'));

/** One entry for each file, service, method, message, field and enum: its full name, and all there is to say about it. */
export type Declarations = Map<string, unknown>;

export function declaredByFacts(facts: Facts): Declarations {
  const found: Declarations = new Map();
  for (const { files } of Object.values(facts.domains)) {
    for (const [path, file] of Object.entries(files)) {
      found.set(path, { package: file.package });
      for (const service of Object.values(file.services)) addService(found, service, path);
      for (const message of Object.values(file.messages)) addMessage(found, message, path);
      for (const enumeration of Object.values(file.enums)) addEnum(found, enumeration, path);
    }
  }
  return found;
}

function addService(found: Declarations, service: { full_name: string; methods: MethodFacts[] }, file: string): void {
  found.set(service.full_name, { file });
  for (const method of service.methods) {
    found.set(`${service.full_name}/${method.name}`, {
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

const routesOf = ({ http }: MethodFacts): RouteFacts[] => (http ? [http, ...(http.additional_bindings ?? [])] : []);

/** A method without an iam option authenticates by itself; one that asks for nothing takes any valid token. */
function accessOf({ iam_mode, iam_disabled, unscoped, capabilities, scope_fields }: MethodFacts): string {
  if (iam_disabled || iam_mode === 'absent') return 'public';
  return unscoped || (capabilities.length === 0 && scope_fields.length === 0) ? 'unscoped' : 'scoped';
}

function addMessage(found: Declarations, message: MessageFacts, file: string): void {
  found.set(message.full_name, {
    file,
    oneofs: message.oneofs ?? [],
    reservedNumbers: reserved(message.reserved_numbers),
    reservedNames: message.reserved_names ?? [],
    deprecated: message.deprecated ?? false,
    resource: message.resource,
  });
  for (const field of message.fields) {
    found.set(`${message.full_name}.${field.name}`, {
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
  for (const nested of Object.values(message.messages ?? {})) addMessage(found, nested, file);
  for (const nested of Object.values(message.enums ?? {})) addEnum(found, nested, file);
}

function addEnum(found: Declarations, enumeration: EnumFacts, file: string): void {
  found.set(enumeration.full_name, {
    file,
    values: enumeration.values.map(({ name, number }) => `${name} = ${number}`),
    reservedNumbers: reserved(enumeration.reserved_numbers),
  });
}

function reserved(facts: readonly ReservedFacts[] = []): number[] {
  return facts.flatMap((fact) => {
    const [first = NaN, last = first] = String(fact).split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

/** The JSON name protoc gives a field that names none. */
const camelCase = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
