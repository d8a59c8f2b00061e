import { resolve } from 'node:path';
import type { DescMethod, JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { LibraryImportsService } from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import { type Api, createApi } from '../client/api.ts';
import { contextOf } from '../context.ts';
import { misused } from '../exit-codes.ts';
import { messageOf } from '../failure.ts';
import { example } from '../help.ts';
import { addImportOptions, type ImportOptions } from '../imports/options.ts';
import { runImport } from '../imports/run.ts';
import { readLibraries } from './read.ts';
import type { LibraryRecord } from './record.ts';
import { countLibraries, type Tally } from './walk.ts';

/** Looks for wheels, source distributions and the layout of Maven repositories. */
export function addImport(area: Command): void {
  const command = addImportOptions(
    area
      .command('import')
      .description('take in Python wheels and source distributions, and what a Maven repository holds'),
    'directories to look into, and into all that lies below',
  ).option('--remediated', 'they carry security fixes of their own');
  command.addHelpText(
    'after',
    'Names, versions and descriptions are read from inside the files; the files stay where they are.',
  );
  example(
    command,
    'wharf libraries import ./wheels --parent $GROUP',
    'wharf libraries import ~/.m2/repository --parent $GROUP',
  );
  command.action(async (paths: string[], options: ImportOptions & { remediated?: boolean }) => {
    const { parent, refusals, remediated = false } = options;
    const context = await contextOf(command);
    const api = createApi(context);
    const directories = paths.map((path) => resolve(path));
    const tally: Tally = { read: 0, total: await countLibraries(directories).catch(unreadable) };
    await runImport<LibraryRecord>(context, {
      what: 'libraries',
      items: readLibraries(directories, { remediated, tally }),
      send: (records) => sendAll(api, parent, records),
      reading: tally,
      refusalsFile: refusals,
    });
  });
}

const unreadable = (error: unknown): never => {
  throw misused(`cannot look for libraries there: ${messageOf(error)}`);
};

const methods: Readonly<Record<LibraryRecord['ecosystem'], DescMethod>> = {
  java: LibraryImportsService.method.importJavaLibraries,
  python: LibraryImportsService.method.importPythonLibraries,
};

/** Each ecosystem has a method of its own. Answers one outcome for all. */
async function sendAll(api: Api, parent: string, records: readonly LibraryRecord[]): Promise<JsonObject> {
  const sum = { created: 0, updated: 0, unchanged: 0 };
  const refusals: JsonObject[] = [];
  for (const [ecosystem, method] of Object.entries(methods)) {
    const own = [...records.keys()].filter((at) => records[at]?.ecosystem === ecosystem);
    if (own.length === 0) continue;
    const versions = own.map((at) => records[at]?.version ?? {});
    const outcome = await api.call(method, { path: [parent], body: { versions } });
    for (const key of ['created', 'updated', 'unchanged'] as const) sum[key] += Number(outcome[key] ?? 0);
    for (const refusal of (outcome.refusals ?? []) as JsonObject[]) {
      refusals.push({ ...refusal, index: own[Number(refusal.index ?? 0)] ?? 0 });
    }
  }
  return { ...sum, refusals };
}
