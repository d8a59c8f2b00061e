import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import {
  AdvisoriesService,
  type ListAdvisoriesRequest,
} from '../../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import type { AdvisoryJson } from '../../formats/advisories/advisory-json.ts';
import { type AdvisoryFormat, advisoryFormats } from '../../formats/advisories/decode-advisories.ts';
import { encodeOpenVex } from '../../formats/advisories/openvex/encode.ts';
import { encodeOsv } from '../../formats/advisories/osv/encode.ts';
import { encodeAdvisoryYaml } from '../../formats/advisories/yaml/encode.ts';
import { type Api, createApi, routedMethod } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { usageError } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { print } from '../output/print.ts';
import { queryOf } from '../resource/commands.ts';
import { queryFieldPaths } from '../resource/field-paths.ts';
import { addFlags } from '../resource/flags.ts';
import { type ExportTarget, openDirectoryTarget, openLinesTarget } from './export-target.ts';

const { listAdvisories } = AdvisoriesService.method;

/** Set by the export itself. The other fields of the request are filters with flags. */
const PAGING_FIELDS: readonly (keyof ListAdvisoriesRequest)[] = ['pageSize', 'pageToken', 'orderBy', 'skip'];

export function addAdvisoryExport(area: Command): void {
  const command = area
    .command('export')
    .description('write advisories as advisory YAML files, OSV records or OpenVEX documents')
    .addOption(new Option('--format <format>', 'the format to write').choices(advisoryFormats).makeOptionMandatory())
    .option('--to <path>', 'yaml and openvex: a directory, for one file per package; osv: a file of JSON lines');
  const row = routedMethod(listAdvisories);
  const filters = queryFieldPaths(row, row.route).filter(
    ({ field }) => !PAGING_FIELDS.some((name) => name === field.localName),
  );
  addFlags(command, filters);
  addClientOptions(command);
  command.addHelpText(
    'after',
    '\nWithout --to, osv and openvex are written to standard output as JSON lines. Importing an export gives the same\n' +
      'advisories: data that the format does not define is written in additional fields, which other programs ignore.',
  );
  addExamples(
    command,
    'wharf advisories export --format yaml --to ./advisories --descendants-of $GROUP',
    'wharf advisories export --format osv --artifact-names curl | gzip > curl.jsonl.gz',
  );
  command.action(async ({ format, to }: { format: AdvisoryFormat; to?: string }) => {
    const context = await readContext(command);
    if (to === undefined && format === 'yaml')
      throw usageError('--format yaml writes a directory of files: give it with --to');
    const fields = queryOf(command, filters);
    const isFile = to === undefined || format === 'osv';
    const target = await (isFile ? openLinesTarget(to, context.terminal) : openDirectoryTarget(to));
    const count = await writeAll(pagesOf(createApi(context), fields, format !== 'osv'), format, target);
    await target.close();
    if (to !== undefined) {
      print(context, { advisories: count, files: target.files }, () => `${count} advisories written to ${to}\n`);
    }
  });
}

/** Yields all pages of advisories, ordered by package if `byPackage`. */
async function* pagesOf(
  api: Api,
  fields: Readonly<Record<string, JsonValue>>,
  byPackage: boolean,
): AsyncGenerator<readonly AdvisoryJson[]> {
  let pageToken: JsonValue | undefined;
  do {
    const page: JsonObject = await api.call(listAdvisories, {
      fields: { ...fields, page_size: 200, page_token: pageToken, ...(byPackage && { order_by: 'artifact_name' }) },
    });
    yield (page.advisories ?? []) as AdvisoryJson[];
    pageToken = page.nextPageToken || undefined;
  } while (pageToken !== undefined);
}

type Pages = AsyncIterable<readonly AdvisoryJson[]>;

/** The encoder and the file extension of each format. */
const writers = {
  yaml: { extension: '.advisories.yaml', encode: encodeAdvisoryYaml },
  openvex: {
    extension: '.openvex.json',
    encode: (name: string, advisories: readonly AdvisoryJson[]) => JSON.stringify(encodeOpenVex(name, advisories)),
  },
  osv: {
    extension: '',
    encode: (_: string, advisories: readonly AdvisoryJson[]) =>
      advisories.map((advisory) => JSON.stringify(encodeOsv(advisory))).join('\n'),
  },
} as const satisfies Record<AdvisoryFormat, unknown>;

/** Writes package by package and returns the number of advisories. */
async function writeAll(pages: Pages, format: AdvisoryFormat, target: ExportTarget): Promise<number> {
  const { extension, encode } = writers[format];
  let count = 0;
  for await (const { name, advisories } of packagesOf(pages)) {
    await target.write(name, extension, encode(name, advisories));
    count += advisories.length;
  }
  return count;
}

/** Groups consecutive advisories of the same package. */
async function* packagesOf(pages: Pages): AsyncGenerator<{ name: string; advisories: AdvisoryJson[] }> {
  let group: { name: string; advisories: AdvisoryJson[] } | undefined;
  for await (const page of pages) {
    for (const advisory of page) {
      const { artifactName: name } = advisory;
      if (group?.name === name) group.advisories.push(advisory);
      else {
        if (group) yield group;
        group = { name, advisories: [advisory] };
      }
    }
  }
  if (group) yield group;
}
