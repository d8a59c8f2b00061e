import { fromBinary } from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FileDescriptorProto,
  FileDescriptorSetSchema,
} from '@bufbuild/protobuf/wkt';

/** The files of the contract by the directory that declares them. A new file is served without being named anywhere. */
const lists: readonly { readonly name: string; readonly comment: string; readonly path: RegExp }[] = [
  { name: 'v2Files', comment: 'v2 of the Resource Management API.', path: /^chainguard\/platform\// },
  { name: 'v1Files', comment: 'v1 of the Resource Management API.', path: /^platform\// },
  {
    name: 'wharfingerFiles',
    comment: 'Services that the Resource Management API does not have.',
    path: /^wharfinger\/(?!options\/|oci\/)/,
  },
  { name: 'ociFiles', comment: 'The OCI distribution API.', path: /^wharfinger\/oci\// },
];

/** The domains of the API in the order of its documentation. Others follow. */
const domains = ['iam', 'registry', 'vulnerabilities', 'libraries', 'advisory', 'events', 'ping'];

/** Generates the modules that list the files of the contract: `files.js` and its types. */
export function fileLists(descriptors: Uint8Array): { readonly js: string; readonly dts: string } {
  const paths = filesIn(descriptors).map(({ name }) => name.replace(/\.proto$/, ''));
  const listed = lists.map((list) => ({ ...list, files: inOrder(paths.filter((path) => list.path.test(path))) }));
  const imports = listed.flatMap(({ files }) => files).sort();
  const js = [
    '// Generated from contract/ by tools/generate.ts.',
    '',
    ...imports.map((path) => `import { ${symbolOf(path)} } from "./${path}_pb.js";`),
    ...listed.map(
      ({ name, files }) => `\nexport const ${name} = [\n${files.map((f) => `  ${symbolOf(f)},\n`).join('')}];`,
    ),
  ];
  const dts = [
    '// Generated from contract/ by tools/generate.ts.',
    '',
    'import type { DescFile } from "@bufbuild/protobuf";',
    ...listed.map(({ name, comment }) => `\n/** ${comment} */\nexport declare const ${name}: readonly DescFile[];`),
  ];
  return { js: `${js.join('\n')}\n`, dts: `${dts.join('\n')}\n` };
}

/** The name under which protobuf-es exports the descriptor of a file. */
const symbolOf = (path: string): string => `file_${path.replace(/[^a-zA-Z0-9]/g, '_')}`;

function inOrder(paths: readonly string[]): string[] {
  const rank = (path: string): number => {
    const at = domains.findIndex((domain) => path.split('/').includes(domain));
    return at < 0 ? domains.length : at;
  };
  return paths.toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** The types of all resources that have a List method, by API domain. The command line reads it instead of the contract. */
export function listedTypes(descriptors: Uint8Array): Record<string, string[]> {
  const types: Record<string, string[]> = {};
  for (const file of filesIn(descriptors)) {
    const domain = file.package.split('.').at(-2) ?? '';
    if (!lists.some(({ name, path }) => (name === 'v2Files' || name === 'wharfingerFiles') && path.test(file.name)))
      continue;
    for (const { name, outputType } of file.service.flatMap(({ method }) => method)) {
      const response = file.messageType.find((message) => outputType === `.${file.package}.${message.name}`);
      const items = response?.field.find(({ label, type }) => label === REPEATED && type === MESSAGE);
      if (!name.startsWith('List') || !items) continue;
      types[domain] = [...(types[domain] ?? []), items.typeName.slice(1)];
    }
  }
  return types;
}

const REPEATED = FieldDescriptorProto_Label.REPEATED;
const MESSAGE = FieldDescriptorProto_Type.MESSAGE;

const filesIn = (descriptors: Uint8Array): FileDescriptorProto[] =>
  fromBinary(FileDescriptorSetSchema, descriptors).file;
