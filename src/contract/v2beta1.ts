import { clone, createFileRegistry, type DescFile, getExtension, hasExtension, setExtension } from '@bufbuild/protobuf';
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { http } from './gen/google/api/annotations_pb.js';
import type { HttpRule } from './gen/google/api/http_pb.js';
import type { Method } from './method.ts';

// v2beta1 is what v2 was called before: packages and paths differ in that one part, and in nothing else.

const V2_NAME = /^(\.?chainguard\.platform\.\w+\.)v2(?=\.|$)/;
const V2_PATH = /^((?:\/|chainguard\/platform\/)\w+\/)v2(?=\/)/;

const renamed = (name: string): string => name.replace(V2_NAME, '$1v2beta1');
const moved = (path: string): string => path.replace(V2_PATH, '$1v2beta1');

/** The id of a v2 method under its former name; nothing for any other method. */
export const v2beta1Id = (id: string): string | undefined => (V2_NAME.test(id) ? renamed(id) : undefined);

/** The table with each v2 method a second time under its former name. Its messages are those of v2. */
export const withV2beta1 = (methods: readonly Method[]): readonly Method[] => [
  ...methods,
  ...methods.flatMap((method): Method[] => {
    const id = v2beta1Id(method.id);
    if (id === undefined) return [];
    return [{ ...method, id, routes: method.routes.map((route) => ({ ...route, template: moved(route.template) })) }];
  }),
];

/** The files of v2 under their former names, for those who ask the server what it serves. */
export function v2beta1Files(v2Files: readonly DescFile[]): readonly DescFile[] {
  const known = new Map(v2Files.flatMap((file) => file.dependencies).map((file) => [file.proto.name, file]));
  const made = new Map<string, DescFile>();
  const protos = new Map(v2Files.map(({ proto }) => [moved(proto.name), v2beta1Proto(proto)]));
  const make = (name: string): DescFile | undefined => {
    const proto = protos.get(name);
    const file = made.get(name) ?? (proto ? createFileRegistry(proto, make).getFile(name) : known.get(name));
    if (file) made.set(name, file);
    return file;
  };
  return [...protos.keys()].flatMap((name) => make(name) ?? []);
}

function v2beta1Proto(proto: FileDescriptorProto): FileDescriptorProto {
  const beta = clone(FileDescriptorProtoSchema, proto);
  beta.name = moved(beta.name);
  beta.package = renamed(beta.package);
  beta.dependency = beta.dependency.map(moved);
  for (const message of beta.messageType) retype(message);
  for (const method of beta.service.flatMap((service) => service.method)) {
    method.inputType = renamed(method.inputType);
    method.outputType = renamed(method.outputType);
    if (!method.options || !hasExtension(method.options, http)) continue;
    const rule = getExtension(method.options, http);
    for (const { pattern } of [rule, ...rule.additionalBindings]) move(pattern);
    setExtension(method.options, http, rule);
  }
  return beta;
}

function retype(message: DescriptorProto): void {
  for (const field of message.field) field.typeName = renamed(field.typeName);
  for (const nested of message.nestedType) retype(nested);
}

function move(pattern: HttpRule['pattern']): void {
  if (pattern.case !== undefined && pattern.case !== 'custom') pattern.value = moved(pattern.value);
}
