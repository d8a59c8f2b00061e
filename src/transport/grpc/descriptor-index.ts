import type { DescFile } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';

/** Finds the file of everything that has a name. */
export interface DescriptorIndex {
  /** Only those of the files themselves, not of what they import. */
  readonly services: readonly string[];
  readonly byName: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
  /** By the extended message and the number of the extension. */
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
          const known = extensions.get(type.extendee.typeName) ?? new Map();
          extensions.set(type.extendee.typeName, known.set(type.number, file));
          break;
        }
      }
    }
  }
  const services = files.flatMap((file) => file.services.map(({ typeName }) => typeName));
  return { services, byName, bySymbol, extensions };
}

/** The files and all that they import, each once. */
export function withDependencies(files: readonly DescFile[]): Iterable<DescFile> {
  const found = new Map<string, DescFile>();
  const visit = (file: DescFile) => {
    if (found.has(file.proto.name)) return;
    found.set(file.proto.name, file);
    file.dependencies.forEach(visit);
  };
  files.forEach(visit);
  return found.values();
}
