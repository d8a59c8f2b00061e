import { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import {
  type ImportJavaLibrariesRequest,
  LibraryImportsService,
  type LibraryVersion,
} from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import type { Outcome } from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import { type Operations, type WriteHandlers, writeOperation } from '../../resource/operation.ts';
import { importBatch } from '../imports/import-records.ts';
import { putVersions } from './put-versions.ts';
import { versionProblems } from './version-rules.ts';

const { importJavaLibraries, importPythonLibraries } = LibraryImportsService.method;

export const libraryImportOperations: Operations = {
  ...writeOperation(importJavaLibraries, importInto(Ecosystem.JAVA)),
  ...writeOperation(importPythonLibraries, importInto(Ecosystem.PYTHON)),
};

type LibraryBatch = Pick<ImportJavaLibrariesRequest, 'parent' | 'versions'>;

function importInto(ecosystem: Ecosystem): WriteHandlers<LibraryBatch, Outcome> {
  const rules = {
    field: 'versions',
    idOf: ({ name, version }: LibraryVersion) => `${name} ${version}`.trim(),
    problemsOf: (record: LibraryVersion) => versionProblems(ecosystem, record),
  };
  return {
    run: ({ db, now }, { parent, versions }) =>
      importBatch(rules, versions, (valid) => putVersions(db, parent, ecosystem, valid, now)),
  };
}
