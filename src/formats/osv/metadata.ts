import type { SeverityJson } from '../advisory.ts';
import { fieldsOf, filled, givenText, listOf, textOf } from '../reading.ts';
import { readRecord } from './record.ts';

/** What is known of a vulnerability, in the JSON of the API. */
export type MetadataJson = {
  id: string;
  summary?: string;
  details?: string;
  references?: { type: string; url: string }[];
  severities?: SeverityJson[];
};

const KNOWN_REFERENCE = /^(?:ADVISORY|ARTICLE|DETECTION|DISCUSSION|REPORT|FIX|INTRODUCED|PACKAGE|EVIDENCE|WEB)$/;

/** Reads what an OSV record says of the vulnerability itself. */
export function decodeMetadata(value: unknown): MetadataJson {
  const { id, severities, fields } = readRecord(value);
  return filled({
    id,
    // One line, says the schema; not every author keeps to it.
    summary: textOf(fields.summary, 'summary')
      .split(/[\r\n]+/)
      .map((line) => line.trim())
      .join(' ')
      .trim(),
    details: textOf(fields.details, 'details'),
    references: listOf(fields.references, 'references').map(readReference),
    severities: [...severities],
  });
}

/** The schema grows new types from time to time; what we do not know is a page of the web. */
function readReference(value: unknown, at: number): { type: string; url: string } {
  const { type, url } = fieldsOf(value, `references[${at}]`);
  const name = givenText(type, `references[${at}].type`);
  return { type: `TYPE_${KNOWN_REFERENCE.test(name) ? name : 'WEB'}`, url: givenText(url, `references[${at}].url`) };
}
