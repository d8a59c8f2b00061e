import type { Command } from 'commander';
import { addExamples } from './help.ts';
import type { ResourceSpec } from './resource/spec.ts';

interface Area {
  readonly name: string;
  readonly description: string;
  /** Resources whose commands are all derived from the contract. */
  readonly resources?: () => Promise<readonly ResourceSpec[]>;
  /** Adds other commands. */
  readonly commands?: () => Promise<(area: Command) => void>;
}

/** The areas, whose commands need the contract. */
const areas: readonly Area[] = [
  {
    name: 'iam',
    description: 'groups, identities and their roles',
    resources: async () => (await import('./iam.ts')).resources,
  },
  {
    name: 'repos',
    description: 'image repositories and their READMEs',
    commands: async () => (await import('./registry/resources.ts')).addRepos,
  },
  {
    name: 'tags',
    description: 'tags of images',
    commands: async () => (await import('./registry/resources.ts')).addTags,
  },
  {
    name: 'images',
    description: 'architectures and sizes of images',
    commands: async () => (await import('./registry/resources.ts')).addImages,
  },
  {
    name: 'advisories',
    description: 'histories of vulnerabilities in packages',
    commands: async () => (await import('./advisories/advisories.ts')).addAdvisories,
  },
  {
    name: 'vulns',
    description: 'vulnerability metadata, such as severities',
    commands: async () => (await import('./vulns.ts')).addVulns,
  },
  {
    name: 'reports',
    description: 'reports of vulnerability scanners about images',
    commands: async () => (await import('./reports/reports.ts')).addReports,
  },
  {
    name: 'libraries',
    description: 'Java and Python libraries',
    commands: async () => (await import('./libraries/libraries.ts')).addLibraries,
  },
  {
    name: 'events',
    description: 'subscriptions to events and their deliveries',
    commands: async () => (await import('./events/events.ts')).addEvents,
  },
];

export const areaNames: readonly string[] = areas.map(({ name }) => name);

/** Adds the areas. Only those that the command line names get their commands, because loading the contract is slow. */
export async function addAreas(program: Command, args: readonly string[]): Promise<void> {
  for (const { name, description, resources, commands } of areas) {
    const area = program.command(name).description(description);
    if (!args.includes(name)) continue;
    (await commands?.())?.(area);
    if (!resources) continue;
    const { addResource } = await import('./resource/commands.ts');
    const specs = await resources();
    for (const spec of specs) addResource(area, spec);
    addExamples(area, ...specs.map((spec) => `wharf ${name} ${spec.name} list`));
  }
}
