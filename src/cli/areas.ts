import type { Command } from 'commander';
import listedTypes from '../contract/gen/listed-types.json' with { type: 'json' };
import { addExamples } from './help.ts';
import type { CommandSpec } from './resource/command-spec.ts';

interface Area {
  readonly name: string;
  readonly description: string;
  /** The resource types whose commands are described here. Those of all other resources follow from the contract. */
  readonly describes: readonly string[];
  /** Resources whose commands are all derived from the contract. */
  readonly resources?: () => Promise<readonly CommandSpec[]>;
  /** Adds commands to those of the resources. */
  readonly verbs?: () => Promise<(area: Command) => void>;
  /** Adds other commands. */
  readonly commands?: () => Promise<(area: Command) => void>;
}

/** The areas, whose commands need the contract. */
const areas: readonly Area[] = [
  {
    name: 'iam',
    description: 'groups, identities and their roles',
    describes: [
      'chainguard.platform.iam.v2.Group',
      'chainguard.platform.iam.v2.Identity',
      'chainguard.platform.iam.v2.Role',
      'chainguard.platform.iam.v2.RoleBinding',
      'chainguard.platform.iam.v2.IdentityProvider',
      'chainguard.platform.iam.v2.GroupInvite',
      'wharfinger.iam.v1.ServerIdentity',
      'wharfinger.iam.v1.Session',
    ],
    resources: async () => (await import('./iam.ts')).resources,
    verbs: async () => (await import('./iam-verbs.ts')).addIamVerbs,
  },
  {
    name: 'repos',
    description: 'image repositories, their READMEs and the life cycles of their versions',
    describes: ['chainguard.platform.registry.v2.Repo', 'wharfinger.registry.v1.VersionLifecycle'],
    commands: async () => (await import('./registry/resources.ts')).addRepos,
  },
  {
    name: 'tags',
    description: 'tags of images',
    describes: ['chainguard.platform.registry.v2.Tag'],
    commands: async () => (await import('./registry/resources.ts')).addTags,
  },
  {
    name: 'images',
    description: 'architectures and sizes of images',
    describes: [],
    commands: async () => (await import('./registry/resources.ts')).addImages,
  },
  {
    name: 'advisories',
    description: 'histories of vulnerabilities in packages',
    describes: ['chainguard.platform.vulnerabilities.v2.Advisory'],
    commands: async () => (await import('./advisories/advisories.ts')).addAdvisories,
  },
  {
    name: 'vulns',
    description: 'vulnerability metadata, such as severities',
    describes: ['chainguard.platform.advisory.v2.VulnerabilityMetadata'],
    commands: async () => (await import('./vulns.ts')).addVulns,
  },
  {
    name: 'reports',
    description: 'reports of vulnerability scanners about images',
    describes: ['wharfinger.reports.v1.Report'],
    commands: async () => (await import('./reports/reports.ts')).addReports,
  },
  {
    name: 'libraries',
    description: 'Java and Python libraries',
    describes: ['chainguard.platform.libraries.v2.Artifact', 'chainguard.platform.libraries.v2.ArtifactVersion'],
    commands: async () => (await import('./libraries/libraries.ts')).addLibraries,
  },
  {
    name: 'events',
    description: 'subscriptions to events and their deliveries',
    describes: ['chainguard.platform.events.v2.Subscription', 'wharfinger.events.v1.Delivery'],
    commands: async () => (await import('./events/events.ts')).addEvents,
  },
];

/** The types of resources that no area describes, by API domain, which is then also the name of their area. */
const undescribed: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(listedTypes)
    .map(([domain, types]) => [domain, types.filter((type) => !isDescribed(type))] as const)
    .filter(([, types]) => types.length > 0),
);

function isDescribed(type: string): boolean {
  return areas.some(({ describes }) => describes.includes(type));
}

/** `access requests` for the type `wharfinger.access.v1.AccessRequest`. */
const describeDomain = (domain: string): string =>
  (undescribed.get(domain) ?? [])
    .map((type) => type.slice(type.lastIndexOf('.') + 1).replace(/(?<=[a-z])(?=[A-Z])/g, ' '))
    .map((name) => `${name.toLowerCase()}s`)
    .join(', ');

const allAreas: readonly Area[] = [
  ...areas,
  ...[...undescribed.keys()]
    .filter((domain) => !areas.some(({ name }) => name === domain))
    .map((domain) => ({ name: domain, description: describeDomain(domain), describes: [] })),
];

export const areaNames: readonly string[] = allAreas.map(({ name }) => name);

/** Adds the areas. Only those that the command line names get their commands, because loading the contract is slow. */
export async function addAreas(program: Command, args: readonly string[]): Promise<void> {
  for (const { name, description, resources, verbs, commands } of allAreas) {
    const area = program.command(name).description(description);
    if (!args.includes(name)) continue;
    (await commands?.())?.(area);
    const derivedTypes = undescribed.get(name) ?? [];
    if (!resources && derivedTypes.length === 0) continue;
    const { addResource } = await import('./resource/commands.ts');
    const { defaultCommandSpec } = await import('./resource/default-command-spec.ts');
    const specs = [...((await resources?.()) ?? []), ...derivedTypes.map(defaultCommandSpec)];
    for (const spec of specs) addResource(area, spec);
    (await verbs?.())?.(area);
    addExamples(area, ...specs.map((spec) => `wharf ${name} ${spec.name} list`));
  }
}
