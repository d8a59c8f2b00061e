import { toDigest } from '../../../blobs/digest.ts';
import { isObject, type JsonObject } from '../../../formats/lenient.ts';
import { RegistryError } from '../errors.ts';
import { parseJson } from './json.ts';

/** What one manifest says, as far as the server cares. */
export interface Manifest {
  readonly mediaType: string;
  readonly kind: 'image' | 'index' | 'artifact';
  /** The type that a list of referrers shows and filters by. */
  readonly artifactType: string | undefined;
  readonly subject: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
  /** Only images have one. */
  readonly config: Descriptor | undefined;
  /** Layers of an image, blobs of an artifact. */
  readonly layers: readonly Descriptor[];
  /** Children of an index. */
  readonly manifests: readonly Descriptor[];
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform: Platform | undefined;
}

export interface Platform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}

/** A manifest with what its transaction needs to know. */
export interface PushedManifest {
  readonly digest: string;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
  /** What the config of an image says that it runs on. */
  readonly platform: Platform | undefined;
}

export interface GivenManifest {
  readonly digest: string;
  /** The content type without parameters; empty when there was none, so that the manifest's own word counts. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Reads the blob of an image config, or answers nothing when the repo has no such blob. */
export type ReadConfig = (config: Pick<Descriptor, 'digest' | 'size'>) => Promise<Uint8Array | undefined>;

const KINDS: ReadonlyMap<string, Manifest['kind']> = new Map([
  ['application/vnd.oci.image.manifest.v1+json', 'image'],
  ['application/vnd.docker.distribution.manifest.v2+json', 'image'],
  ['application/vnd.oci.image.index.v1+json', 'index'],
  ['application/vnd.docker.distribution.manifest.list.v2+json', 'index'],
  ['application/vnd.oci.artifact.manifest.v1+json', 'artifact'],
]);

export const IMAGE_CONFIGS: ReadonlySet<string> = new Set([
  'application/vnd.oci.image.config.v1+json',
  'application/vnd.docker.container.image.v1+json',
]);
export const MAX_CONFIG_BYTES = 4 * 1024 * 1024;

/** More than any image has; each costs a row and a look-up. */
const MAX_REFERENCES = 5000;

/** Takes a manifest apart before its transaction begins, because reading a config is no work for a transaction. */
export async function readPushed(given: GivenManifest, readConfig: ReadConfig): Promise<PushedManifest> {
  const manifest = parseManifest(given.bytes, given.mediaType);
  const { config } = manifest;
  const wanted = config && IMAGE_CONFIGS.has(config.mediaType) && config.size <= MAX_CONFIG_BYTES;
  const bytes = wanted ? await readConfig(config) : undefined;
  return { digest: given.digest, bytes: given.bytes, manifest, platform: bytes && platformIn(bytes) };
}

export function parseManifest(bytes: Uint8Array, contentType: string): Manifest {
  const json = objectIn('the manifest', parsed(bytes));
  const own = json.mediaType === undefined ? undefined : textIn('mediaType', json.mediaType);
  if (own !== undefined && contentType !== '' && own !== contentType) {
    throw invalid(`mediaType is ${own}, but the content type of the request is ${contentType}`);
  }
  const mediaType = contentType || own || '';
  const kind = KINDS.get(mediaType);
  if (!kind) throw invalid(`the media type must be one of ${[...KINDS.keys()].join(', ')}`);
  if (kind !== 'artifact' && json.schemaVersion !== 2) throw invalid('schemaVersion must be 2');
  refuseAmbiguity(kind, json);

  const config = kind === 'image' ? descriptorIn('config', json.config) : undefined;
  const layers = kind === 'index' ? [] : listIn(kind === 'image' ? 'layers' : 'blobs', json);
  const manifests = kind === 'index' ? listIn('manifests', json) : [];
  if (layers.length + manifests.length > MAX_REFERENCES) {
    throw invalid(`a manifest can refer to at most ${MAX_REFERENCES} blobs or manifests`);
  }
  const artifactType = json.artifactType === undefined ? undefined : textIn('artifactType', json.artifactType);
  return {
    mediaType,
    kind,
    artifactType: artifactType || config?.mediaType,
    subject: json.subject === undefined ? undefined : descriptorIn('subject', json.subject).digest,
    annotations: annotationsIn(json.annotations),
    config,
    layers,
    manifests,
  };
}

/** Readers that guess must not take for an image what others take for an index (CVE-2021-41190). */
function refuseAmbiguity(kind: Manifest['kind'], json: JsonObject): void {
  const foreign = kind === 'index' ? ['config', 'layers', 'blobs'] : ['manifests'];
  const found = foreign.find((field) => json[field] !== undefined);
  if (found) throw invalid(`an ${kind} manifest must not have ${found}`);
}

/** A layer that clients fetch from elsewhere and never push. */
export const isForeign = ({ mediaType }: Descriptor): boolean => /(?:foreign|nondistributable)\./.test(mediaType);

/** Whatever a config says; it may be of any make, so nothing in it is an error. */
function platformIn(bytes: Uint8Array): Platform | undefined {
  try {
    return platformOf(parseJson(bytes));
  } catch {
    return undefined;
  }
}

const invalid = (message: string) => new RegistryError('MANIFEST_INVALID', message);

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes);
  } catch (error) {
    throw invalid(`the manifest ${(error as Error).message}`);
  }
}

function objectIn(field: string, value: unknown): JsonObject {
  if (!isObject(value)) throw invalid(`${field} must be an object`);
  return value;
}

function textIn(field: string, value: unknown): string {
  if (typeof value !== 'string' || value.length > 255 || !/^\P{Cc}*$/u.test(value)) {
    throw invalid(`${field} must be a text of at most 255 characters on one line`);
  }
  return value;
}

function listIn(field: string, json: JsonObject): Descriptor[] {
  const list = json[field] ?? [];
  if (!Array.isArray(list)) throw invalid(`${field} must be a list`);
  return list.map((item, at) => descriptorIn(`${field}[${at}]`, item));
}

function descriptorIn(field: string, value: unknown): Descriptor {
  const { mediaType, digest, size, platform } = objectIn(field, value);
  if (typeof digest !== 'string' || !toDigest(digest)) {
    throw invalid(`${field}.digest must be sha256: or sha512: and lower-case hexadecimal digits`);
  }
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw invalid(`${field}.size must be a number of bytes`);
  }
  return { mediaType: textIn(`${field}.mediaType`, mediaType), digest, size, platform: platformOf(platform) };
}

function annotationsIn(value: unknown): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  const annotations = objectIn('annotations', value);
  for (const text of Object.values(annotations)) {
    if (typeof text !== 'string') throw invalid('annotations must be texts');
  }
  return annotations as Readonly<Record<string, string>>;
}

const SHORT = /^[\w.-]{1,64}$/;

/** Buildkit files attestations under the platform unknown/unknown: nothing runs on that. */
function platformOf(value: unknown): Platform | undefined {
  if (!isObject(value)) return undefined;
  const { os, architecture, variant } = value;
  const isWord = (text: unknown): text is string => typeof text === 'string' && SHORT.test(text);
  if (!isWord(os) || !isWord(architecture) || architecture === 'unknown') return undefined;
  return isWord(variant) ? { os, architecture, variant } : { os, architecture };
}
