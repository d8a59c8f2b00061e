import type { Command } from 'commander';
import { example } from './help.ts';
import type { ResourceSpec } from './resource/spec.ts';

interface Area {
  readonly name: string;
  readonly description: string;
  /** Those whose commands all follow from the contract. */
  readonly resources?: () => Promise<readonly ResourceSpec[]>;
  /** Commands of their own. */
  readonly commands?: () => Promise<(area: Command) => void>;
}

/** Areas whose commands need the contract. */
const areas: readonly Area[] = [
  {
    name: 'iam',
    description: 'groups, identities and their roles',
    resources: async () => (await import('./iam.ts')).resources,
  },
  {
    name: 'repos',
    description: 'repositories of images, and their READMEs',
    commands: async () => (await import('./registry/resources.ts')).addRepos,
  },
  {
    name: 'tags',
    description: 'names of images',
    commands: async () => (await import('./registry/resources.ts')).addTags,
  },
  {
    name: 'images',
    description: 'what images run on, and how large they are',
    commands: async () => (await import('./registry/resources.ts')).addImages,
  },
  {
    name: 'advisories',
    description: 'how vulnerabilities affect packages',
    commands: async () => (await import('./advisories.ts')).addAdvisories,
  },
  {
    name: 'vulns',
    description: 'what is known of vulnerabilities',
    commands: async () => (await import('./vulns.ts')).addVulns,
  },
  {
    name: 'reports',
    description: 'what scanners found in images',
    commands: async () => (await import('./reports.ts')).addReports,
  },
  {
    name: 'libraries',
    description: 'Java and Python libraries',
    commands: async () => (await import('./libraries/libraries.ts')).addLibraries,
  },
  {
    name: 'events',
    description: 'subscriptions to events, and how deliveries went',
    commands: async () => (await import('./events/events.ts')).addEvents,
  },
];

export const areaNames: readonly string[] = areas.map(({ name }) => name);

/** Adds the areas, with all their commands where a command line names them: reading the contract takes longer than the rest of a start. */
export async function addAreas(program: Command, args: readonly string[]): Promise<void> {
  for (const { name, description, resources, commands } of areas) {
    const area = program.command(name).description(description);
    if (!args.includes(name)) continue;
    (await commands?.())?.(area);
    if (!resources) continue;
    const { addResource } = await import('./resource/commands.ts');
    const specs = await resources();
    for (const spec of specs) addResource(area, spec);
    example(area, ...specs.map((spec) => `wharf ${name} ${spec.name} list`));
  }
}
