import { resolve } from 'node:path';
import type { DescMethod, JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { LibraryImportsService } from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import { type Api, createApi } from '../client/api.ts';
import { readContext } from '../client-options.ts';
import { errorMessage } from '../error-message.ts';
import { usageError } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { addImportOptions, type ImportOptions } from '../imports/options.ts';
import { runImport } from '../imports/run-import.ts';
import { countLibraries, type ScanProgress } from './find-libraries.ts';
import type { LibraryRecord } from './library-record.ts';
import { readLibraries } from './read-libraries.ts';

/** Adds the import of wheels, source distributions and Maven repositories. */
export function addImport(area: Command): void {
  const command = addImportOptions(
    area
      .command('import')
      .description('import Python wheels and source distributions, and the libraries of a Maven repository'),
    'directories to search, with their subdirectories',
  ).option('--remediated', 'mark the libraries as remediated: they contain additional security fixes');
  command.addHelpText(
    'after',
    'The command reads names, versions and descriptions from the files. It does not upload the files.',
  );
  addExamples(
    command,
    'wharf libraries import ./wheels --parent $GROUP',
    'wharf libraries import ~/.m2/repository --parent $GROUP',
  );
  command.action(async (paths: string[], options: ImportOptions & { remediated?: boolean }) => {
    const { parent, refusals, remediated = false } = options;
    const context = await readContext(command);
    const api = createApi(context);
    const directories = paths.map((path) => resolve(path));
    const progress: ScanProgress = { read: 0, total: await countLibraries(directories).catch(unreadable) };
    await runImport<LibraryRecord>(context, {
      what: 'libraries',
      items: readLibraries(directories, { remediated, progress }),
      send: (records) => sendByEcosystem(api, parent, records),
      readProgress: progress,
      refusalsFile: refusals,
    });
  });
}

const unreadable = (error: unknown): never => {
  throw usageError(`cannot search for libraries: ${errorMessage(error)}`);
};

const methods: Readonly<Record<LibraryRecord['ecosystem'], DescMethod>> = {
  java: LibraryImportsService.method.importJavaLibraries,
  python: LibraryImportsService.method.importPythonLibraries,
};

/** Sends the records of each ecosystem with its method and returns the sum of the outcomes. */
async function sendByEcosystem(api: Api, parent: string, records: readonly LibraryRecord[]): Promise<JsonObject> {
  const sum = { created: 0, updated: 0, unchanged: 0 };
  const refusals: JsonObject[] = [];
  for (const [ecosystem, method] of Object.entries(methods)) {
    const indexes = [...records.keys()].filter((index) => records[index]?.ecosystem === ecosystem);
    if (indexes.length === 0) continue;
    const versions = indexes.map((index) => records[index]?.version ?? {});
    const outcome = await api.call(method, { path: [parent], body: { versions } });
    for (const key of ['created', 'updated', 'unchanged'] as const) sum[key] += Number(outcome[key] ?? 0);
    for (const refusal of (outcome.refusals ?? []) as JsonObject[]) {
      refusals.push({ ...refusal, index: indexes[Number(refusal.index ?? 0)] ?? 0 });
    }
  }
  return { ...sum, refusals };
}
