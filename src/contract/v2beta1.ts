import { clone, createFileRegistry, type DescFile, getExtension, hasExtension, setExtension } from '@bufbuild/protobuf';
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { http } from './gen/google/api/annotations_pb.js';
import type { HttpRule } from './gen/google/api/http_pb.js';
import type { Method } from './method.ts';

// v2beta1 is the former name of v2. Its packages, file names and routes have `v2beta1` where those of v2 have `v2`.

const V2_NAME = /^(\.?chainguard\.platform\.\w+\.)v2(?=\.|$)/;
const V2_PATH = /^((?:\/|chainguard\/platform\/)\w+\/)v2(?=\/)/;

const betaName = (name: string): string => name.replace(V2_NAME, '$1v2beta1');
const betaPath = (path: string): string => path.replace(V2_PATH, '$1v2beta1');

/** The id of a v2 method in v2beta1; undefined for any other method. */
export const v2beta1Id = (id: string): string | undefined => (V2_NAME.test(id) ? betaName(id) : undefined);

/** Adds each v2 method a second time under its v2beta1 name. The messages are those of v2. */
export const withV2beta1 = (methods: readonly Method[]): readonly Method[] => [
  ...methods,
  ...methods.flatMap((method): Method[] => {
    const id = v2beta1Id(method.id);
    if (id === undefined) return [];
    return [
      { ...method, id, routes: method.routes.map((route) => ({ ...route, template: betaPath(route.template) })) },
    ];
  }),
];

/** The files of v2 under their v2beta1 names, for gRPC reflection. */
export function v2beta1Files(v2Files: readonly DescFile[]): readonly DescFile[] {
  const imports = new Map(v2Files.flatMap((file) => file.dependencies).map((file) => [file.proto.name, file]));
  const created = new Map<string, DescFile>();
  const protos = new Map(v2Files.map(({ proto }) => [betaPath(proto.name), v2beta1Proto(proto)]));
  const fileNamed = (name: string): DescFile | undefined => {
    const proto = protos.get(name);
    const file = created.get(name) ?? (proto ? createFileRegistry(proto, fileNamed).getFile(name) : imports.get(name));
    if (file) created.set(name, file);
    return file;
  };
  return [...protos.keys()].flatMap((name) => fileNamed(name) ?? []);
}

function v2beta1Proto(proto: FileDescriptorProto): FileDescriptorProto {
  const beta = clone(FileDescriptorProtoSchema, proto);
  beta.name = betaPath(beta.name);
  beta.package = betaName(beta.package);
  beta.dependency = beta.dependency.map(betaPath);
  for (const message of beta.messageType) renameFieldTypes(message);
  for (const method of beta.service.flatMap((service) => service.method)) {
    method.inputType = betaName(method.inputType);
    method.outputType = betaName(method.outputType);
    if (!method.options || !hasExtension(method.options, http)) continue;
    const rule = getExtension(method.options, http);
    for (const { pattern } of [rule, ...rule.additionalBindings]) renameRoute(pattern);
    setExtension(method.options, http, rule);
  }
  return beta;
}

function renameFieldTypes(message: DescriptorProto): void {
  for (const field of message.field) {
    // Only messages and enums have a type name. An empty one that is set makes the descriptor invalid for some clients.
    if (field.typeName !== '') field.typeName = betaName(field.typeName);
  }
  for (const nested of message.nestedType) renameFieldTypes(nested);
}

function renameRoute(pattern: HttpRule['pattern']): void {
  if (pattern.case !== undefined && pattern.case !== 'custom') pattern.value = betaPath(pattern.value);
}
