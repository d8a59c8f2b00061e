import { gzipSync } from 'node:zlib';
import { type Command, Option } from 'commander';
import { isUid } from '../../base/uid.ts';
import { ReposService } from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ReportImportsService } from '../../contract/gen/wharfinger/imports/v1/reports_pb.js';
import { type Api, createApi } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { usageError } from '../exit-codes.ts';
import { addExamples } from '../help.ts';
import { openSource } from '../imports/import-source.ts';
import { runImport } from '../imports/run-import.ts';

/** The server's limit for one decompressed report. */
const MAX_REPORT_BYTES = 32 * 1024 * 1024;
/** The server limits a request to four of the largest reports, because parsing them takes time. */
const LIMITS = { records: 4, bytes: 3 * 1024 * 1024 };

interface Options {
  readonly repo: string;
  readonly digest?: string;
  readonly refusals?: string;
}

export function addReportImport(area: Command): void {
  const command = area
    .command('import')
    .description('import JSON reports of Grype and Trivy about images')
    .argument('<path...>', "files and directories, also gzip and zip files; '-' for standard input")
    .addOption(new Option('--repo <repo>', 'the repo of the images: its uid or its name').makeOptionMandatory())
    .option('--digest <digest>', 'the image of the reports (default: the image that each report names)')
    .option('--refusals <file>', 'write all refused reports to this file, as JSON lines')
    .addHelpText(
      'after',
      '\nA report that exists already is not changed. The server imports reports that are attached to an image by itself.',
    );
  addClientOptions(command);
  addExamples(
    command,
    'wharf reports import grype.json --repo $REPO',
    'trivy image --format json $IMAGE | wharf reports import - --repo app --digest sha256:…',
  );
  command.action(async (paths: string[], { repo, digest, refusals }: Options) => {
    const context = await readContext(command);
    const api = createApi(context);
    const source = await openSource(paths, MAX_REPORT_BYTES);
    const parent = await repoUid(api, repo);
    await runImport(context, {
      what: 'reports',
      items: source.items((text) => [{ id: digest ?? '', record: reportFileOf(text, digest) }]),
      send: (reports) =>
        api.call(ReportImportsService.method.importReports, { path: [parent], body: { reports: [...reports] } }),
      readProgress: source.progress,
      refusalsFile: refusals,
      limits: LIMITS,
    });
  });
}

/** Compressed, because reports are repetitive. */
const reportFileOf = (text: string, digest: string | undefined) => ({
  content: gzipSync(text).toString('base64'),
  ...(digest !== undefined && { digest }),
});

async function repoUid(api: Api, repo: string): Promise<string> {
  if (isUid(repo)) return repo;
  const { repos } = await api.call(ReposService.method.listRepos, { fields: { name: repo } });
  const [first, second] = repos as { uid: string }[];
  if (!first) throw usageError(`no repo is named ${repo}, or you may not list it`);
  if (second) throw usageError(`several repos are named ${repo}: give the uid of one of them`);
  return first.uid;
}
