import type { JsonObject } from '@bufbuild/protobuf';

/** A wharfinger.imports.v1.LibraryVersion, and which method takes it. */
export interface LibraryRecord extends JsonObject {
  readonly ecosystem: 'java' | 'python';
  readonly version: JsonObject;
}

export interface Facts {
  readonly ecosystem: LibraryRecord['ecosystem'];
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly files: readonly { readonly name: string; readonly size: number; readonly time: number }[];
}

/** What the server takes for a description. */
const MAX_DESCRIPTION = 512;

export function recordOf(facts: Facts, remediated: boolean): LibraryRecord {
  const { ecosystem, name, version, description } = facts;
  const files = facts.files.map((file) => ({
    name: file.name,
    sizeBytes: String(file.size),
    createTime: new Date(file.time).toISOString(),
  }));
  return {
    ecosystem,
    version: { name, version, description: oneLine(description), files, ...(remediated && { remediated }) },
  };
}

/** Maven has whole paragraphs; what matters is said first. */
function oneLine(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length <= MAX_DESCRIPTION ? line : `${line.slice(0, MAX_DESCRIPTION - 1).trimEnd()}…`;
}
