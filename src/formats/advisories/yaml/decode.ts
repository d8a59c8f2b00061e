import {
  type DecodeResult,
  decodeRecord,
  listOf,
  malformed,
  recordIdIn,
  requireObject,
  requireText,
  textOf,
  toDecodeFailure,
} from '../../strict-json.ts';
import type { AdvisoryJson } from '../advisory-json.ts';
import { parseYaml } from './parse-yaml.ts';
import { readAdvisory } from './read-advisory.ts';

/** Decodes a file of schema version 2 with the advisories of one package. A malformed advisory is refused alone. */
export function decodeAdvisoryYaml(text: string): DecodeResult<AdvisoryJson>[] {
  try {
    const file = requireObject(parseYaml(text), '');
    checkVersion(file['schema-version']);
    const name = requireText(requireObject(file.package, 'package').name, 'package.name');
    return listOf(file.advisories, 'advisories').map((advisory, index) =>
      decodeRecord(recordIdIn(advisory, 'id'), () => readAdvisory(name, advisory, `advisories[${index}]`)),
    );
  } catch (error) {
    return [toDecodeFailure('', error)];
  }
}

function checkVersion(value: unknown): void {
  const version = textOf(value, 'schema-version');
  if (!/^2(?:\.\d+)*$/.test(version)) throw malformed('schema-version', 'must be 2, 2.0.1 or 2.0.2');
}
