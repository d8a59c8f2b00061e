import type { Command } from 'commander';
import { ArchitecturesSchema, SizeSchema } from '../../contract/gen/chainguard/platform/registry/v2/images_pb.js';
import {
  RepoReadmeSchema,
  RepoSchema,
  ReposService,
} from '../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { TagSchema } from '../../contract/gen/chainguard/platform/registry/v2/tags_pb.js';
import { VersionLifecycleSchema } from '../../contract/gen/wharfinger/registry/v1/version_lifecycles_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import type { ClientContext } from '../context.ts';
import { addExamples } from '../help.ts';
import { print } from '../output/print.ts';
import { escapeForTerminal } from '../output/text.ts';
import { type CommandSpec, verbs } from '../resource/command-spec.ts';
import { addVerb } from '../resource/commands.ts';

const repos: CommandSpec = {
  name: 'repos',
  resource: RepoSchema,
  columns: { UID: 'uid', NAME: 'name', DESCRIPTION: 'description', UPDATED: 'updateTime' },
  examples: { create: '--parent $GROUP --name app', update: '$ID --description "what it is for"' },
};

const readmes: CommandSpec = {
  name: 'readme',
  resource: RepoReadmeSchema,
  columns: { CONTENT: 'content' },
  files: ['content'],
  examples: { update: '$ID --content @README.md' },
};

const lifecycles: CommandSpec = {
  name: 'lifecycles',
  resource: VersionLifecycleSchema,
  columns: {
    UID: 'uid',
    VERSION: 'version',
    PACKAGE: 'mainPackageName',
    RELEASED: 'releaseDate',
    EOL: 'eolDate',
    'GRACE UNTIL': 'gracePeriodExpiryDate',
  },
  examples: {
    list: '--children-of $REPO',
    create: '--parent $REPO --version 3.12 --release-date 2023-10-02 --eol-date 2028-10-31',
    update: '$ID --eol-date 2028-10-31 --grace-period-expiry-date 2029-04-30',
  },
};

const tags: CommandSpec = {
  name: 'tags',
  resource: TagSchema,
  columns: { UID: 'uid', NAME: 'name', DIGEST: 'digest', DEPRECATED: 'deprecated', UPDATED: 'updateTime' },
  examples: {
    list: '--children-of $REPO --order-by "update_time desc"',
    create: '--parent $REPO --name v1 --digest sha256:…',
  },
};

const architectures: CommandSpec = {
  name: 'architectures',
  resource: ArchitecturesSchema,
  columns: { ARCHITECTURES: 'architectures' },
  examples: { get: '$REPO sha256:…' },
};

const sizes: CommandSpec = {
  name: 'size',
  resource: SizeSchema,
  columns: { SIZE: 'size' },
  examples: { get: '$REPO sha256:… --architecture arm64' },
};

export function addRepos(area: Command): void {
  for (const verb of verbs) addVerb(area, verb, repos);
  const readme = area.command('readme').description('the README of a repo');
  addReadmeGet(readme);
  addVerb(readme, 'update', readmes, 'set');
  addExamples(readme, 'wharf repos readme get $ID');
  const lifecycle = area.command('lifecycles').description('the life cycles of the versions in a repo');
  for (const verb of verbs) addVerb(lifecycle, verb, lifecycles);
  addExamples(lifecycle, 'wharf repos lifecycles list --children-of $REPO');
  addExamples(area, 'wharf repos list --descendants-of $GROUP');
}

/** Adds a command that prints the Markdown itself, not a table. */
function addReadmeGet(parent: Command): void {
  const command = parent.command('get').description('print the README of a repo as Markdown').argument('<uid>');
  addExamples(addClientOptions(command), 'wharf repos readme get $ID > README.md');
  command.action(async () => {
    const context = await readContext(command);
    const readme = await createApi(context).call(ReposService.method.getRepoReadme, { path: command.args });
    print(context, readme, () => markdownFor(context, String(readme.content ?? '')));
  });
}

/** Escapes control characters for a terminal, but not for a file. */
const markdownFor = ({ terminal }: ClientContext, text: string): string =>
  terminal.width === undefined ? text : `${text.split('\n').map(escapeForTerminal).join('\n')}\n`;

export function addTags(area: Command): void {
  for (const verb of verbs) addVerb(area, verb, tags);
  addExamples(area, 'wharf tags list --children-of $REPO');
}

export function addImages(area: Command): void {
  addVerb(area, 'get', architectures, 'architectures');
  addVerb(area, 'get', sizes, 'size');
  addExamples(area, 'wharf images architectures $REPO sha256:…');
}
