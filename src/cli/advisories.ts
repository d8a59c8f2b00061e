import { type Command, Option } from 'commander';
import { AdvisorySchema } from '../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { AdvisoryImportsService } from '../contract/gen/wharfinger/imports/v1/advisories_pb.js';
import { type AdvisoryFormat, advisoryFormats, decodeAdvisories } from '../formats/advisories.ts';
import { addAdvisoryExport } from './advisories-export.ts';
import { createApi } from './client/api.ts';
import { contextOf } from './context.ts';
import { example } from './help.ts';
import { addImportOptions, type ImportOptions } from './imports/options.ts';
import { runImport } from './imports/run.ts';
import { openSource } from './imports/source.ts';
import { addVerb } from './resource/commands.ts';
import type { ResourceSpec } from './resource/spec.ts';

const advisories: ResourceSpec = {
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
  example(
    area,
    'wharf advisories import ./advisories --parent $GROUP',
    'wharf advisories list --aliases CVE-2024-1234',
  );
}

function addImport(area: Command): void {
  const command = addImportOptions(
    area
      .command('import')
      .description('take in advisories from advisory YAML files, OSV records and OpenVEX documents'),
  ).addOption(
    new Option('--format <format>', 'how to read the files (default: what each looks like)').choices(advisoryFormats),
  );
  example(
    command,
    'wharf advisories import ./advisories --parent $GROUP',
    'wharf advisories import all.zip --parent $GROUP --refusals refused.jsonl',
    'zcat osv.jsonl.gz | wharf advisories import - --parent $GROUP',
  );
  command.action(async (paths: string[], options: ImportOptions & { format?: AdvisoryFormat }) => {
    const { parent, refusals, format } = options;
    const context = await contextOf(command);
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
      reading: source.reading,
      refusalsFile: refusals,
    });
  });
}
