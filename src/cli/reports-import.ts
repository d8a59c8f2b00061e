import { gzipSync } from 'node:zlib';
import { type Command, Option } from 'commander';
import { isUid } from '../base/uid.ts';
import { ReposService } from '../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { ReportImportsService } from '../contract/gen/wharfinger/imports/v1/reports_pb.js';
import { type Api, createApi } from './client/api.ts';
import { addClientOptions, contextOf } from './context.ts';
import { misused } from './exit-codes.ts';
import { example } from './help.ts';
import { runImport } from './imports/run.ts';
import { openSource } from './imports/source.ts';

/** The most that the server takes of one report, unpacked. */
const MAX_BYTES = 32 * 1024 * 1024;
/** Reading reports is work: a server takes four of the largest at once, and no more. */
const LIMITS = { records: 4, bytes: 3 * 1024 * 1024 };

interface Options {
  readonly repo: string;
  readonly digest?: string;
  readonly refusals?: string;
}

export function addReportImport(area: Command): void {
  const command = area
    .command('import')
    .description('take in JSON reports of Grype and Trivy on images')
    .argument('<path...>', "files and directories, also packed as gzip or zip; '-' for standard input")
    .addOption(new Option('--repo <repo>', 'the repo of the images: its uid, or its name').makeOptionMandatory())
    .option('--digest <digest>', 'the image that they are about (default: the one that each names)')
    .option('--refusals <file>', 'write all that was refused to this file, as JSON lines')
    .addHelpText(
      'after',
      '\nA report that is in already stays as it is. Reports that are attached to an image in the registry come in by themselves.',
    );
  addClientOptions(command);
  example(
    command,
    'wharf reports import grype.json --repo $REPO',
    'trivy image --format json $IMAGE | wharf reports import - --repo app --digest sha256:…',
  );
  command.action(async (paths: string[], { repo, digest, refusals }: Options) => {
    const context = await contextOf(command);
    const api = createApi(context);
    const source = await openSource(paths, MAX_BYTES);
    const parent = await repoUid(api, repo);
    await runImport(context, {
      what: 'reports',
      items: source.items((text) => [{ id: digest ?? '', record: fileOf(text, digest) }]),
      send: (reports) =>
        api.call(ReportImportsService.method.importReports, { path: [parent], body: { reports: [...reports] } }),
      reading: source.reading,
      refusalsFile: refusals,
      limits: LIMITS,
    });
  });
}

/** Packed, since reports say the same over and over. */
const fileOf = (text: string, digest: string | undefined) => ({
  content: gzipSync(text).toString('base64'),
  ...(digest !== undefined && { digest }),
});

async function repoUid(api: Api, repo: string): Promise<string> {
  if (isUid(repo)) return repo;
  const { repos } = await api.call(ReposService.method.listRepos, { fields: { name: repo } });
  const [found, another] = repos as { uid: string }[];
  if (!found) throw misused(`there is no repo named ${repo} that you may list`);
  if (another) throw misused(`several repos are named ${repo}; give the uid of the one you mean`);
  return found.uid;
}
