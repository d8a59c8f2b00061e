import type { DescFile } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';

/** Finds the file that declares a name. */
export interface DescriptorIndex {
  /** The services of the given files, without those of their imports. */
  readonly services: readonly string[];
  readonly byName: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
  /** By the name of the extended message and the number of the extension. */
  readonly extensions: ReadonlyMap<string, ReadonlyMap<number, DescFile>>;
}

export function indexFiles(files: readonly DescFile[]): DescriptorIndex {
  const byName = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  for (const file of withDependencies(files)) {
    byName.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      bySymbol.set(type.typeName, file);
      switch (type.kind) {
        case 'message':
          for (const { name } of type.members) bySymbol.set(`${type.typeName}.${name}`, file);
          break;
        case 'service':
          for (const { name } of type.methods) bySymbol.set(`${type.typeName}.${name}`, file);
          break;
        case 'extension': {
          const byNumber = extensions.get(type.extendee.typeName) ?? new Map();
          extensions.set(type.extendee.typeName, byNumber.set(type.number, file));
          break;
        }
      }
    }
  }
  const services = files.flatMap((file) => file.services.map(({ typeName }) => typeName));
  return { services, byName, bySymbol, extensions };
}

/** The files and all files that they import, directly or indirectly, each once. */
export function withDependencies(files: readonly DescFile[]): Iterable<DescFile> {
  const visited = new Map<string, DescFile>();
  const visit = (file: DescFile) => {
    if (visited.has(file.proto.name)) return;
    visited.set(file.proto.name, file);
    file.dependencies.forEach(visit);
  };
  files.forEach(visit);
  return visited.values();
}
