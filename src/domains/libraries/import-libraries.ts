import { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import {
  type ImportJavaLibrariesRequest,
  type ImportPythonLibrariesRequest,
  LibraryImportsService,
  type LibraryVersion,
} from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import type { Operation, Operations } from '../../resource/operation.ts';
import { takeIn } from '../imports/import-records.ts';
import { putVersions } from './put-versions.ts';
import { versionProblems } from './version-rules.ts';

const { typeName, method } = LibraryImportsService;

export const libraryImportOperations: Operations = {
  [`${typeName}/${method.importJavaLibraries.name}`]: importOf(Ecosystem.JAVA),
  [`${typeName}/${method.importPythonLibraries.name}`]: importOf(Ecosystem.PYTHON),
};

function importOf(ecosystem: Ecosystem): Operation {
  const judge = {
    field: 'versions',
    idOf: ({ name, version }: LibraryVersion) => `${name} ${version}`.trim(),
    problemsOf: (given: LibraryVersion) => versionProblems(ecosystem, given),
  };
  return {
    mode: 'write',
    run({ db, now }, request) {
      const { parent, versions } = request as ImportJavaLibrariesRequest | ImportPythonLibrariesRequest;
      return takeIn(judge, versions, (taken) => putVersions(db, parent, ecosystem, taken, now));
    },
  };
}
