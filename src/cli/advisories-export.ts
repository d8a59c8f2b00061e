import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { type Command, Option } from 'commander';
import {
  AdvisoriesService,
  type ListAdvisoriesRequest,
} from '../contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { type AdvisoryFormat, advisoryFormats } from '../formats/advisories.ts';
import type { AdvisoryJson } from '../formats/advisory.ts';
import { encodeAdvisoryYaml } from '../formats/advisory-yaml/encode.ts';
import { encodeOpenVex } from '../formats/openvex/encode.ts';
import { encodeOsv } from '../formats/osv/encode.ts';
import { type Api, createApi, rowOf } from './client/api.ts';
import { addClientOptions, contextOf } from './context.ts';
import { misused } from './exit-codes.ts';
import { example } from './help.ts';
import { type Outlet, openDirectory, openLines } from './imports/export-target.ts';
import { print } from './output/print.ts';
import { queryOf } from './resource/commands.ts';
import { queryPlaces } from './resource/field-paths.ts';
import { addFlags } from './resource/flags.ts';

const { listAdvisories } = AdvisoriesService.method;

/** Paging and order are ours; everything else of the request says which advisories. */
const OURS: readonly (keyof ListAdvisoriesRequest)[] = ['pageSize', 'pageToken', 'orderBy', 'skip'];

export function addAdvisoryExport(area: Command): void {
  const command = area
    .command('export')
    .description('write advisories as advisory YAML files, OSV records or OpenVEX documents')
    .addOption(new Option('--format <format>', 'what to write').choices(advisoryFormats).makeOptionMandatory())
    .option('--to <path>', 'a directory with a file for each package; for osv a file of JSON lines');
  const row = rowOf(listAdvisories);
  const filters = queryPlaces(row, row.route).filter(({ field }) => !OURS.some((name) => name === field.localName));
  addFlags(command, filters);
  addClientOptions(command);
  command.addHelpText(
    'after',
    '\nWithout --to, osv and openvex go to standard output as JSON lines. Importing what was exported gives the same\n' +
      'advisories: what a format has no place for goes along, out of the way of others.',
  );
  example(
    command,
    'wharf advisories export --format yaml --to ./advisories --descendants-of $GROUP',
    'wharf advisories export --format osv --artifact-names curl | gzip > curl.jsonl.gz',
  );
  command.action(async ({ format, to }: { format: AdvisoryFormat; to?: string }) => {
    const context = await contextOf(command);
    if (to === undefined && format === 'yaml') throw misused('--format yaml writes files: say where with --to');
    const fields = queryOf(command, filters);
    const isFile = to === undefined || format === 'osv';
    const outlet = await (isFile ? openLines(to, context.terminal) : openDirectory(to));
    const count = await writeAll(pagesOf(createApi(context), fields, format !== 'osv'), format, outlet);
    await outlet.close();
    if (to !== undefined) {
      print(context, { advisories: count, files: outlet.files }, () => `${count} advisories written to ${to}\n`);
    }
  });
}

/** All advisories, a page at a time; package by package where a format puts those of a package together. */
async function* pagesOf(
  api: Api,
  fields: Readonly<Record<string, JsonValue>>,
  byPackage: boolean,
): AsyncGenerator<readonly AdvisoryJson[]> {
  let token: JsonValue | undefined;
  do {
    const page: JsonObject = await api.call(listAdvisories, {
      fields: { ...fields, page_size: 200, page_token: token, ...(byPackage && { order_by: 'artifact_name' }) },
    });
    yield (page.advisories ?? []) as AdvisoryJson[];
    token = page.nextPageToken || undefined;
  } while (token !== undefined);
}

type Pages = AsyncIterable<readonly AdvisoryJson[]>;

/** How a format writes what belongs together, and what its files are called. */
const writers = {
  yaml: { ending: '.advisories.yaml', encode: encodeAdvisoryYaml },
  openvex: {
    ending: '.openvex.json',
    encode: (name: string, advisories: readonly AdvisoryJson[]) => JSON.stringify(encodeOpenVex(name, advisories)),
  },
  osv: {
    ending: '',
    encode: (_: string, advisories: readonly AdvisoryJson[]) =>
      advisories.map((advisory) => JSON.stringify(encodeOsv(advisory))).join('\n'),
  },
} as const satisfies Record<AdvisoryFormat, unknown>;

/** Answers how many were written. Only one package is held at a time. */
async function writeAll(pages: Pages, format: AdvisoryFormat, outlet: Outlet): Promise<number> {
  const { ending, encode } = writers[format];
  let count = 0;
  for await (const { name, advisories } of packagesOf(pages)) {
    await outlet.write(name, ending, encode(name, advisories));
    count += advisories.length;
  }
  return count;
}

/** Those that stand together and are of the same package. */
async function* packagesOf(pages: Pages): AsyncGenerator<{ name: string; advisories: AdvisoryJson[] }> {
  let held: { name: string; advisories: AdvisoryJson[] } | undefined;
  for await (const page of pages) {
    for (const advisory of page) {
      const { artifactName: name } = advisory;
      if (held?.name === name) held.advisories.push(advisory);
      else {
        if (held) yield held;
        held = { name, advisories: [advisory] };
      }
    }
  }
  if (held) yield held;
}
