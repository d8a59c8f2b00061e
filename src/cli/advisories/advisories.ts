import { type Command, Option } from 'commander';
import { AdvisorySchema } from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../../contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { type AdvisoryFormat, advisoryFormats, decodeAdvisories } from '../../formats/advisories/decode-advisories.ts';
import { createApi } from '../client/api.ts';
import { readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { openSource } from '../imports/import-source.ts';
import { addImportOptions, type ImportOptions } from '../imports/options.ts';
import { runImport } from '../imports/run-import.ts';
import type { CommandSpec } from '../resource/command-spec.ts';
import { addVerb } from '../resource/commands.ts';
import { addAdvisoryExport } from './export.ts';

const advisories: CommandSpec = {
  name: 'advisories',
  resource: AdvisorySchema,
  columns: {
    UID: 'uid',
    ID: 'advisoryId',
    ARTIFACT: 'artifactName',
    TYPE: 'artifactType',
    ALIASES: 'aliases',
    EVENTS: 'events.length',
    UPDATED: 'updateTime',
  },
  examples: { list: '--artifact-names curl --latest-event-type fixed --order-by "update_time desc"' },
};

/** The commands of `wharf advisories`. */
export function addAdvisories(area: Command): void {
  addImport(area);
  addAdvisoryExport(area);
  addVerb(area, 'list', advisories);
  addVerb(area, 'get', advisories);
  addExamples(
    area,
    'wharf advisories import ./advisories --parent $GROUP',
    'wharf advisories list --aliases CVE-2024-1234',
  );
}

function addImport(area: Command): void {
  const command = addImportOptions(
    area.command('import').description('import advisories from advisory YAML files, OSV records and OpenVEX documents'),
  ).addOption(
    new Option('--format <format>', 'the format of the files (default: detected for each file)').choices(
      advisoryFormats,
    ),
  );
  addExamples(
    command,
    'wharf advisories import ./advisories --parent $GROUP',
    'wharf advisories import all.zip --parent $GROUP --refusals refused.jsonl',
    'zcat osv.jsonl.gz | wharf advisories import - --parent $GROUP',
  );
  command.action(async (paths: string[], options: ImportOptions & { format?: AdvisoryFormat }) => {
    const { parent, refusals, format } = options;
    const context = await readContext(command);
    const source = await openSource(paths);
    const api = createApi(context);
    await runImport(context, {
      what: 'advisories',
      items: source.items((text) => decodeAdvisories(text, format)),
      send: (records) =>
        api.call(AdvisoryImportsService.method.importAdvisories, {
          path: [parent],
          body: { advisories: [...records] },
        }),
      readProgress: source.progress,
      refusalsFile: refusals,
    });
  });
}
