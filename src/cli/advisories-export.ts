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
import { type Outlet, openDirectory, openLines } from './imports/outlet.ts';
import { print } from './output/print.ts';
import { addFlags, givenFlags } from './resource/flags.ts';
import { protoPath, queryPlaces } from './resource/places.ts';

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
    const fields = Object.fromEntries(givenFlags(command, filters).map(([place, value]) => [protoPath(place), value]));
    const isFile = to === undefined || format === 'osv';
    const outlet = await (isFile ? openLines(to, context.terminal) : openDirectory(to));
    const count = await writeAll(pagesOf(createApi(context), fields, format !== 'osv'), format, outlet);
    await outlet.close();
    if (to !== undefined) {
      print(
        context,
        { advisories: count, files: outlet.files },
        () => `${count} advisories in ${outlet.files} files\n`,
      );
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

async function writeAll(pages: Pages, format: AdvisoryFormat, outlet: Outlet): Promise<number> {
  let count = 0;
  if (format === 'osv') {
    for await (const page of pages) {
      for (const advisory of page)
        await outlet.write(advisory.artifactName, '.osv.json', JSON.stringify(encodeOsv(advisory)));
      count += page.length;
    }
    return count;
  }
  for await (const [first, ...others] of packagesOf(pages)) {
    if (first === undefined) continue;
    const { artifactName: name } = first;
    const advisories = [first, ...others];
    if (format === 'yaml') await outlet.write(name, '.advisories.yaml', encodeAdvisoryYaml(name, advisories));
    else await outlet.write(name, '.openvex.json', JSON.stringify(encodeOpenVex(name, advisories)));
    count += advisories.length;
  }
  return count;
}

/** Those of one package after those of another; only one package is held. */
async function* packagesOf(pages: Pages): AsyncGenerator<AdvisoryJson[]> {
  let held: AdvisoryJson[] = [];
  for await (const page of pages) {
    for (const advisory of page) {
      if (held.length > 0 && held[0]?.artifactName !== advisory.artifactName) {
        yield held;
        held = [];
      }
      held.push(advisory);
    }
  }
  if (held.length > 0) yield held;
}
