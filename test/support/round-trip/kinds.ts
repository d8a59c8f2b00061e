import type { DescField, DescMessage, DescMethodUnary, DescService } from '@bufbuild/protobuf';
import { v1Files, v2Files } from '../../../src/contract/gen/files.js';

/** A kind of resource that clients create, read, change and delete, as the contract declares it. */
export interface ResourceKind {
  /** Such as `iam.v2.Group`. */
  readonly name: string;
  readonly version: 'v1' | 'v2beta1';
  readonly resource: DescMessage;
  readonly create: DescMethodUnary;
  /** Gets the resource, or lists it by its uid. */
  readonly read: DescMethodUnary;
  readonly update: DescMethodUnary | undefined;
  readonly remove: DescMethodUnary | undefined;
}

/** Methods whose name begins with Create and that create no resource of their own. */
const otherCreates: Readonly<Record<string, string>> = {
  'chainguard.platform.iam.GroupInvites/CreateWithGroup': 'creates a group and its invite in one call',
  'chainguard.platform.iam.RoleBindings/CreateBatch': 'creates many bindings',
  'chainguard.platform.libraries.AWSMarketplaceSubscriptions/Create': 'is refused: there is no marketplace',
  'chainguard.platform.events.Identities/Create': 'creates an identity that the service Identities of iam reads',
};

const idOf = ({ parent, name }: DescMethodUnary): string => `${parent.typeName}/${name}`;

/** The kinds of v1 and v2beta1. Throws if a method of the contract creates something that cannot be read. */
export function resourceKinds(): ResourceKind[] {
  const kindsOf = (services: readonly DescService[], version: ResourceKind['version']): ResourceKind[] =>
    services.flatMap(({ methods }) =>
      (methods as DescMethodUnary[])
        .filter((method) => method.name.startsWith('Create') && !(idOf(method) in otherCreates))
        .map((create) => kindOf(create, methods as DescMethodUnary[], version)),
    );
  return [
    ...kindsOf(
      v1Files.flatMap(({ services }) => services),
      'v1',
    ),
    ...kindsOf(
      v2Files.flatMap(({ services }) => services),
      'v2beta1',
    ),
  ];
}

function kindOf(
  create: DescMethodUnary,
  methods: readonly DescMethodUnary[],
  version: ResourceKind['version'],
): ResourceKind {
  const resource = create.output;
  const noun = create.name.slice('Create'.length);
  const named = (verb: string): DescMethodUnary | undefined => methods.find(({ name }) => name === `${verb}${noun}`);
  const list = methods.find(
    ({ name, output }) => name.startsWith('List') && name.startsWith(`List${plural(noun)}`) && itemsField(output),
  );
  const read = named('Get') ?? list;
  if (!read) throw new Error(`what ${idOf(create)} creates cannot be read`);
  const name = resource.typeName.replace('chainguard.platform.', '');
  return { name, version, resource, create, read, update: named('Update'), remove: named('Delete') };
}

const plural = (noun: string): string => (noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : noun);

/** The field of a list response that has the resources. */
export const itemsField = (output: DescMessage): DescField | undefined =>
  output.fields.find(({ fieldKind, message }) => fieldKind === 'list' && message);

/** The field that identifies a resource. */
export const uidField = ({ fields }: DescMessage): DescField =>
  fields.find(({ name }) => name === 'uid' || name === 'id') ??
  fields.find(({ name }) => name === 'group' || name === 'repo_id') ??
  fail(`a field with the uid`);

/** The field of a create request that has the resource, if its fields are not those of the request. */
export const resourceField = ({ create, resource }: ResourceKind): DescField | undefined =>
  create.input.fields.find(({ message }) => message?.typeName === resource.typeName);

function fail(what: string): never {
  throw new Error(`the contract lacks ${what}`);
}
