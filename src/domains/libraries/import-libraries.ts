import { Ecosystem } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { Ecosystem as V1Ecosystem } from '../../contract/gen/platform/libraries/v1/entitlements.libraries.platform_pb.js';
import { LibraryPolicyBindingMode } from '../../contract/gen/platform/libraries/v1/policy_gates.libraries.platform_pb.js';
import {
  type ImportJavaLibrariesRequest,
  type LibraryFile,
  LibraryImportsService,
  type LibraryVersion,
} from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import type { Outcome } from '../../contract/gen/wharfinger/imports/v1/outcome_pb.js';
import { type Operations, type WriteContext, type WriteHandlers, writeOperation } from '../../resource/operation.ts';
import { importBatch, type RecordResult } from '../imports/import-records.ts';
import { type Block, type BlockCheck, readBlockCheck } from './block-check.ts';
import { JAVASCRIPT } from './ecosystems.ts';
import { recordBlocks } from './library-policy-block-events.ts';
import { createTimeOf, putVersions } from './put-versions.ts';
import { versionProblems } from './version-rules.ts';

const { importJavaLibraries, importJavascriptLibraries, importPythonLibraries } = LibraryImportsService.method;

export const libraryImportOperations: Operations = {
  ...writeOperation(importJavaLibraries, importInto(Ecosystem.JAVA)),
  ...writeOperation(importJavascriptLibraries, importInto(JAVASCRIPT)),
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
    async run(ctx, { parent, versions }) {
      const check = await readBlockCheck(ctx.db, parent, ecosystem as number as V1Ecosystem);
      return importBatch(rules, versions, (valid) => putUnblocked(ctx, parent, ecosystem, valid, check));
    },
  };
}

/** Adds the versions that are not blocked, and records those that are. */
async function putUnblocked(
  ctx: WriteContext,
  parent: string,
  ecosystem: Ecosystem,
  records: readonly LibraryVersion[],
  check: BlockCheck,
): Promise<RecordResult[]> {
  const { db, now } = ctx;
  const blocks = await check(
    records.map((record) => ({ ...record, published: publishedAt(record.files, now) })),
    now,
  );
  await recordBlocks(ctx, parent, ecosystem as number as V1Ecosystem, blocks.flat());
  const refusals = blocks.map((each) => each.find(({ mode }) => mode === LibraryPolicyBindingMode.ENFORCED));
  const accepted = records.filter((_, at) => refusals[at] === undefined);
  const results = (await putVersions(db, parent, ecosystem, accepted, now)).values();
  return refusals.map((refusal) => (refusal ? refusalOf(refusal) : (results.next().value as RecordResult)));
}

const publishedAt = (files: readonly LibraryFile[], now: number): number =>
  Math.min(now, ...files.map((file) => createTimeOf(file, now)));

const refusalOf = ({ reason }: Block): RecordResult => ({ field: 'name', description: reason });
