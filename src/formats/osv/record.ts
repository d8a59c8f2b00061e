import type { SeverityJson } from '../advisory.ts';
import { readCvss } from '../cvss.ts';
import { damaged, type Fields, fieldsOf, givenText, listOf, textsOf } from '../reading.ts';

/** The parts of an OSV record (ossf.github.io/osv-schema) that all who read it need. */
export interface OsvRecord {
  readonly id: string;
  readonly aliases: readonly string[];
  readonly severities: readonly SeverityJson[];
  readonly fields: Fields;
}

/** What a record cannot be without, by the schema. */
export function readRecord(value: unknown): OsvRecord {
  const fields = fieldsOf(value, '');
  const id = givenText(fields.id, 'id');
  givenText(fields.modified, 'modified');
  // What a distribution took over from upstream is known by that name as well.
  const aliases = [...textsOf(fields.aliases, 'aliases'), ...textsOf(fields.upstream, 'upstream')];
  return { id, aliases: [...new Set(aliases)], severities: readSeverities(fields.severity, 'severity'), fields };
}

const VERSIONS = new Map(Object.entries({ CVSS_V2: 2, CVSS_V3: 3, CVSS_V4: 4 }));

/** CVSS vectors. Other scores, such as the words of a distribution, have no place in the API. */
export const readSeverities = (value: unknown, field: string): SeverityJson[] =>
  listOf(value, field).flatMap((item, at): SeverityJson[] => {
    const { type, score } = fieldsOf(item, `${field}[${at}]`);
    const name = givenText(type, `${field}[${at}].type`);
    const severity = { type: `TYPE_${name}`, score: givenText(score, `${field}[${at}].score`) };
    if (!VERSIONS.has(name)) return [];
    if (!isVector(severity)) throw damaged(`${field}[${at}].score`, `is not a vector of CVSS ${VERSIONS.get(name)}`);
    return [severity];
  });

/** Whether the score is what the type promises. */
export const isVector = ({ type, score }: SeverityJson): boolean =>
  readCvss(score)?.version === (VERSIONS.get(type.replace(/^TYPE_/, '')) ?? 0);
