import type { Command } from 'commander';
import { example } from './help.ts';
import type { ResourceSpec } from './resource/spec.ts';

interface Area {
  readonly name: string;
  readonly description: string;
  readonly resources: () => Promise<readonly ResourceSpec[]>;
}

/** Areas whose commands follow from the contract. */
const areas: readonly Area[] = [
  {
    name: 'iam',
    description: 'groups, identities and their roles',
    resources: async () => (await import('./iam.ts')).resources,
  },
];

export const areaNames: readonly string[] = areas.map(({ name }) => name);

/** Adds the areas, with all their commands where a command line names them: reading the contract takes longer than the rest of a start. */
export async function addAreas(program: Command, args: readonly string[]): Promise<void> {
  for (const { name, description, resources } of areas) {
    const area = program.command(name).description(description);
    if (!args.includes(name)) continue;
    const { addResource } = await import('./resource/commands.ts');
    const specs = await resources();
    for (const spec of specs) addResource(area, spec);
    example(area, ...specs.map((spec) => `wharf ${name} ${spec.name} list`));
  }
}
