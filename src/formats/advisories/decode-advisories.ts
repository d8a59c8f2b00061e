import { isTooDeep, MAX_JSON_DEPTH } from '../../base/json-depth.ts';
import { isObject } from '../lenient-json.ts';
import { type DecodeResult, decodeRecord, recordIdIn, toDecodeFailure } from '../strict-json.ts';
import type { AdvisoryJson } from './advisory-json.ts';
import { decodeOpenVex } from './openvex/decode.ts';
import { decodeOsv } from './osv/decode.ts';
import { decodeOsvMetadata, type VulnerabilityMetadataJson } from './osv/vulnerability-metadata.ts';
import { decodeAdvisoryYaml } from './yaml/decode.ts';

export const advisoryFormats = ['yaml', 'osv', 'openvex'] as const;
export type AdvisoryFormat = (typeof advisoryFormats)[number];

/** Decodes the advisories of a file. Without `format`, the format is detected from the content. */
export function decodeAdvisories(text: string, format?: AdvisoryFormat): DecodeResult<AdvisoryJson>[] {
  if (format === 'yaml' || (format === undefined && !looksLikeJson(text))) return decodeAdvisoryYaml(text);
  return decodeJson(text, (value) => {
    const decode = (format ?? (looksLikeOpenVex(value) ? 'openvex' : 'osv')) === 'openvex' ? decodeOpenVex : decodeOsv;
    const id = recordIdIn(value, 'id') || recordIdIn(value, '@id');
    try {
      return decode(value).map((record) => ({ id: record.advisoryId, record }));
    } catch (error) {
      return [toDecodeFailure(id, error)];
    }
  });
}

/** Decodes the vulnerability metadata in the OSV records of a file. */
export const decodeVulnerabilityMetadata = (text: string): DecodeResult<VulnerabilityMetadataJson>[] =>
  decodeJson(text, (value) => [decodeRecord(recordIdIn(value, 'id'), () => decodeOsvMetadata(value))]);

/** Decodes a file with one record or a list of records. */
function decodeJson<T>(text: string, decode: (value: unknown) => DecodeResult<T>[]): DecodeResult<T>[] {
  // Parts of a record are serialized again, and JSON.stringify overflows the stack on deep nesting.
  if (isTooDeep(text)) return [{ id: '', field: '', reason: `is nested more than ${MAX_JSON_DEPTH} levels deep` }];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return [{ id: '', field: '', reason: describeSyntaxError(error as Error) }];
  }
  return Array.isArray(value) ? value.flatMap(decode) : decode(value);
}

/** Keeps only the position of the error: the rest of the message quotes the file. */
function describeSyntaxError({ message }: Error): string {
  const position = /at position \d+/.exec(message)?.[0];
  return `is not JSON${/end of JSON input/.test(message) ? ': it ends too early' : position ? ` ${position}` : ''}`;
}

const looksLikeJson = (text: string): boolean => /^\s*[{[]/.test(text);

const looksLikeOpenVex = (value: unknown): boolean => isObject(value) && ('statements' in value || '@context' in value);
