import { cvssVersionOf } from '../../cvss.ts';
import type { JsonObject } from '../../lenient-json.ts';
import { listOf, malformed, requireObject, requireText, textsOf } from '../../strict-json.ts';
import type { SeverityJson } from '../advisory-json.ts';

/** The parts of an OSV record (ossf.github.io/osv-schema) that all decoders need. */
export interface OsvRecord {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly severities: readonly SeverityJson[];
  readonly fields: JsonObject;
}

/** Reads a record. Refuses it without the fields that the schema requires. */
export function readRecord(value: unknown): OsvRecord {
  const fields = requireObject(value, '');
  const id = requireText(fields.id, 'id');
  requireText(fields.modified, 'modified');
  // A distribution names the upstream vulnerabilities that its record is about. They are aliases too.
  const aliases = [...textsOf(fields.aliases, 'aliases'), ...textsOf(fields.upstream, 'upstream')];
  return { id, aliases: [...new Set(aliases)], severities: readSeverities(fields.severity, 'severity'), fields };
}

const CVSS_VERSIONS = new Map(Object.entries({ CVSS_V2: 2, CVSS_V3: 3, CVSS_V4: 4 }));

/**
 * Reads CVSS vectors. Skips other scores, such as the severity names of a distribution: the API has no field for them.
 */
export const readSeverities = (value: unknown, field: string): SeverityJson[] =>
  listOf(value, field).flatMap((item, index): SeverityJson[] => {
    const { type, score } = requireObject(item, `${field}[${index}]`);
    const name = requireText(type, `${field}[${index}].type`);
    const severity = { type: `TYPE_${name}`, score: requireText(score, `${field}[${index}].score`) };
    if (!CVSS_VERSIONS.has(name)) return [];
    if (!isCvssVector(severity))
      throw malformed(`${field}[${index}].score`, `is not a vector of CVSS ${CVSS_VERSIONS.get(name)}`);
    return [severity];
  });

/** Whether the score is a CVSS vector of the version in the type. */
export const isCvssVector = ({ type, score }: SeverityJson): boolean =>
  cvssVersionOf(score) === (CVSS_VERSIONS.get(type.replace(/^TYPE_/, '')) ?? 0);
