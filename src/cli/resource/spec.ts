import type { DescMessage, DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Api } from '../client/api.ts';

/** What the contract does not say about the commands of a resource. The rest follows from it. */
export interface ResourceSpec {
  /** `role-bindings` in `wharf iam role-bindings list`. */
  readonly name: string;
  readonly resource: DescMessage;
  /** The table of a list: headings, and where in the JSON the value is; of several places the first that has one. */
  readonly columns: Readonly<Record<string, string | readonly string[]>>;
  /** Short flags for fields that many use. One may stand for a field in several members of a oneof. */
  readonly short?: Readonly<Record<string, readonly string[]>>;
  /** Fields whose value is long or secret, and so may be given as `@file`. */
  readonly files?: readonly string[];
  /** What a list asks for unless the flags say otherwise, by request field. */
  readonly defaults?: Readonly<Record<string, JsonValue>>;
  /** What the answer to a create carries beside its message: the name to show it under, and its header. */
  readonly beside?: { readonly name: string; readonly header: string };
  /** The last touch to a body before it is sent. */
  readonly complete?: Complete;
  /** What the examples of the help give, such as `--name my-group`. */
  readonly examples?: Partial<Readonly<Record<VerbName, string>>>;
}

export type Complete = (body: JsonObject, context: { readonly api: Api; readonly group: string }) => Promise<void>;

export const verbs = ['list', 'get', 'create', 'update', 'delete'] as const;
export type VerbName = (typeof verbs)[number];

/** The method behind a verb, where the contract has one. */
export function methodOf({ resource }: ResourceSpec, verb: VerbName): DescMethod | undefined {
  const methods = resource.file.services.flatMap((service) => service.methods);
  if (verb === 'list') {
    return methods.find(({ name, output }) => name.startsWith('List') && listKey(output, resource) !== undefined);
  }
  const name = `${verb[0]?.toUpperCase()}${verb.slice(1)}${resource.name}`;
  return methods.find((method) => method.name === name);
}

/** The JSON name of the list of resources in the answer to List. */
export const listKey = (answer: DescMessage, resource: DescMessage): string | undefined =>
  answer.fields.find((field) => field.fieldKind === 'list' && field.message === resource)?.jsonName;
