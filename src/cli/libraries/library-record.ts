import type { JsonObject } from '@bufbuild/protobuf';

/** A wharfinger.imports.v1.LibraryVersion and its ecosystem, which selects the import method. */
export interface LibraryRecord extends JsonObject {
  readonly ecosystem: 'java' | 'python';
  readonly version: JsonObject;
}

export interface LibraryInfo {
  readonly ecosystem: LibraryRecord['ecosystem'];
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly time: number }[];
}

/** The limit of the server. */
const MAX_DESCRIPTION = 512;

export function libraryRecordOf(library: LibraryInfo, remediated: boolean): LibraryRecord {
  const { ecosystem, name, version, description } = library;
  const files = library.files.map((file) => ({
    name: file.name,
    sizeBytes: String(file.size),
    createTime: new Date(file.time).toISOString(),
  }));
  return {
    ecosystem,
    version: { name, version, description: oneLine(description), files, ...(remediated && { remediated }) },
  };
}

/** Shortens a description. Descriptions of Maven can have several paragraphs. */
function oneLine(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length <= MAX_DESCRIPTION ? line : `${line.slice(0, MAX_DESCRIPTION - 1).trimEnd()}…`;
}
