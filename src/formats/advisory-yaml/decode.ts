import type { AdvisoryJson } from '../advisory.ts';
import { attempt, type Decoded, damaged, fieldsOf, givenText, listOf, nameIn, refusal, textOf } from '../reading.ts';
import { parseYaml } from './parse-yaml.ts';
import { readAdvisory } from './read-advisory.ts';

/** Reads a file of schema version 2: the advisories of one package. One that is damaged keeps no other out. */
export function decodeAdvisoryYaml(text: string): Decoded<AdvisoryJson>[] {
  try {
    const file = fieldsOf(parseYaml(text), '');
    checkVersion(file['schema-version']);
    const name = givenText(fieldsOf(file.package, 'package').name, 'package.name');
    return listOf(file.advisories, 'advisories').map((advisory, at) =>
      attempt(nameIn(advisory, 'id'), () => readAdvisory(name, advisory, `advisories[${at}]`)),
    );
  } catch (error) {
    return [refusal('', error)];
  }
}

function checkVersion(value: unknown): void {
  const version = textOf(value, 'schema-version');
  if (!/^2(?:\.\d+)*$/.test(version)) throw damaged('schema-version', 'must be 2, 2.0.1 or 2.0.2');
}
