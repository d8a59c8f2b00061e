import { isTooDeep, MAX_JSON_DEPTH } from '../base/json-depth.ts';
import type { AdvisoryJson } from './advisory.ts';
import { decodeAdvisoryYaml } from './advisory-yaml/decode.ts';
import { decodeOpenVex } from './openvex/decode.ts';
import { decodeOsv } from './osv/decode.ts';
import { decodeMetadata, type MetadataJson } from './osv/metadata.ts';
import { attempt, type Decoded, isFields, nameIn, refusal } from './reading.ts';

export const advisoryFormats = ['yaml', 'osv', 'openvex'] as const;
export type AdvisoryFormat = (typeof advisoryFormats)[number];

/** Reads the advisories of a file, in the format given or else in the one that it looks like. */
export function decodeAdvisories(text: string, format?: AdvisoryFormat): Decoded<AdvisoryJson>[] {
  if (format === 'yaml' || (format === undefined && !looksLikeJson(text))) return decodeAdvisoryYaml(text);
  return decodeJson(text, (value) => {
    const decode = (format ?? (looksLikeOpenVex(value) ? 'openvex' : 'osv')) === 'openvex' ? decodeOpenVex : decodeOsv;
    const id = nameIn(value, 'id') || nameIn(value, '@id');
    try {
      return decode(value).map((record) => ({ id: record.advisoryId, record }));
    } catch (error) {
      return [refusal(id, error)];
    }
  });
}

/** Reads what the OSV records of a file say of vulnerabilities. */
export const decodeVulnerabilities = (text: string): Decoded<MetadataJson>[] =>
  decodeJson(text, (value) => [attempt(nameIn(value, 'id'), () => decodeMetadata(value))]);

/** A file of one record, or a list of them. */
function decodeJson<T>(text: string, decode: (value: unknown) => Decoded<T>[]): Decoded<T>[] {
  // What is kept of a record is written again, and writing falls over what is too deep.
  if (isTooDeep(text)) return [{ id: '', field: '', reason: `is nested more than ${MAX_JSON_DEPTH} levels deep` }];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [{ id: '', field: '', reason: mistakeIn(error as Error) }];
  }
  return Array.isArray(value) ? value.flatMap(decode) : decode(value);
}

/** Where the mistake is; the rest of the message quotes a text that may be anything. */
function mistakeIn({ message }: Error): string {
  const place = /at position \d+/.exec(message)?.[0];
  return `is not JSON${/end of JSON input/.test(message) ? ': it ends too early' : place ? ` ${place}` : ''}`;
}

const looksLikeJson = (text: string): boolean => /^\s*[{[]/.test(text);

const looksLikeOpenVex = (value: unknown): boolean => isFields(value) && ('statements' in value || '@context' in value);
