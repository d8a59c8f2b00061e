import type { Command } from 'commander';
import {
  ArtifactSchema,
  ArtifactsService,
  ArtifactVersionSchema,
  EcosystemSchema,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import type { CommandSpec } from '../resource/command-spec.ts';
import { addVerb } from '../resource/commands.ts';
import { addImport } from './import.ts';

const ecosystems = EcosystemSchema.values.filter(({ number }) => number !== 0).map(({ name }) => name);

const artifacts: CommandSpec = {
  name: 'artifacts',
  resource: ArtifactSchema,
  columns: {
    UID: 'uid',
    NAME: 'name',
    LATEST: 'latestVersion',
    VERSIONS: 'versionCount',
    UPDATED: 'updateTime',
    DESCRIPTION: 'description',
  },
  defaults: { ecosystems },
  examples: { list: '--ecosystems python --query django' },
};

const versions: CommandSpec = {
  name: 'versions',
  resource: ArtifactVersionSchema,
  columns: { UID: 'uid', VERSION: 'version', SIZE: 'sizeBytes', CREATED: 'createTime', DESCRIPTION: 'description' },
  examples: { list: '$ID --limit 10' },
};

export function addLibraries(area: Command): void {
  addImport(area);
  addVerb(area, 'list', artifacts);
  addVerb(area, 'list', versions, 'versions');
  addCount(area);
  addExamples(area, 'wharf libraries import ./wheels --parent $GROUP', 'wharf libraries list --query django');
}

function addCount(area: Command): void {
  const command = addClientOptions(area.command('count').description('count the artifacts of each ecosystem'));
  addExamples(command, 'wharf libraries count');
  command.action(async () => {
    const context = await readContext(command);
    const response = await createApi(context).call(ArtifactsService.method.getArtifactCount, {
      fields: { ecosystems },
    });
    const counts = response.counts as { ecosystem: string; totalCount: string }[];
    const rows = counts.map(({ ecosystem, totalCount }) => [
      ecosystem.replace('ECOSYSTEM_', '').toLowerCase(),
      totalCount,
    ]);
    print(context, response, () => tableText(['ECOSYSTEM', 'ARTIFACTS'], rows, context.terminal.width));
  });
}
