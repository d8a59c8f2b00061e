import type { DescMessage, DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { Api } from '../client/api.ts';

/** The parts of a resource's commands that cannot be derived from the contract. */
export interface CommandSpec {
  /** The name of the command, such as `role-bindings` in `wharf iam role-bindings list`. */
  readonly name: string;
  readonly resource: DescMessage;
  /**
   * The columns of a list: the header and the JSON path of the value. Of several paths the first with a value is
   * used.
   */
  readonly columns: Readonly<Record<string, string | readonly string[]>>;
  /** Short flags and the fields they set. A short flag can set one field of several members of a oneof. */
  readonly short?: Readonly<Record<string, readonly string[]>>;
  /** Fields whose value can be given as `@file`, because it is long or secret. */
  readonly files?: readonly string[];
  /** Default values of a list request, by field. */
  readonly defaults?: Readonly<Record<string, JsonValue>>;
  /** A response header of Create to print, and the name to print it with. */
  readonly responseHeader?: { readonly name: string; readonly header: string };
  /** Changes a request body before it is sent. */
  readonly complete?: CompleteBody;
  /** The arguments in the examples of the help, such as `--name my-group`. */
  readonly examples?: Partial<Readonly<Record<VerbName, string>>>;
}

export type CompleteBody = (body: JsonObject, context: { readonly api: Api; readonly group: string }) => Promise<void>;

export const verbs = ['list', 'get', 'create', 'update', 'delete'] as const;
export type VerbName = (typeof verbs)[number];

/** Returns the method of a verb, undefined if the contract has none. */
export function methodOf({ resource }: CommandSpec, verb: VerbName): DescMethod | undefined {
  const methods = resource.file.services.flatMap((service) => service.methods);
  if (verb === 'list') {
    return methods.find(({ name, output }) => name.startsWith('List') && listKey(output, resource) !== undefined);
  }
  const name = `${verb[0]?.toUpperCase()}${verb.slice(1)}${resource.name}`;
  return methods.find((method) => method.name === name);
}

/** The JSON name of the list of resources in the response of List. */
export const listKey = (response: DescMessage, resource: DescMessage): string | undefined =>
  response.fields.find((field) => field.fieldKind === 'list' && field.message === resource)?.jsonName;
