import { parseJson } from '../../../base/parse-json.ts';
import { toDigest } from '../../../blobs/digest.ts';
import { isObject, type JsonObject } from '../../../formats/lenient-json.ts';
import { RegistryError } from '../errors.ts';

/** The parts of a manifest that the server uses. */
export interface Manifest {
  readonly mediaType: string;
  readonly kind: 'image' | 'index' | 'artifact';
  /** The type by which referrers are listed and filtered. */
  readonly artifactType: string | undefined;
  /** The digest of the subject. */
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

/** A manifest that is ready to be stored. */
export interface PushedManifest {
  readonly digest: string;
  readonly bytes: Uint8Array;
  readonly manifest: Manifest;
  /** The platform in the config of an image. */
  readonly platform: Platform | undefined;
}

export interface ManifestUpload {
  readonly digest: string;
  /** The content type without parameters. When it is empty, the `mediaType` of the manifest counts. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** Reads the blob of an image config. Returns undefined when the repo does not have it. */
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

/** Each reference takes a row and a lookup. Images have far fewer. */
const MAX_REFERENCES = 5000;

/** The most fields and list items of a manifest. Descriptors have 3 fields or more. */
export const MAX_VALUES = 40_000;
const MAX_ANNOTATIONS = 5000;

/** Parses a manifest and reads its config. This happens before the transaction, because it reads files. */
export async function parsePushedManifest(upload: ManifestUpload, readConfig: ReadConfig): Promise<PushedManifest> {
  const manifest = parseManifest(upload.bytes, upload.mediaType);
  const { config } = manifest;
  const hasPlatform = config && IMAGE_CONFIGS.has(config.mediaType) && config.size <= MAX_CONFIG_BYTES;
  const configBytes = hasPlatform ? await readConfig(config) : undefined;
  const platform = configBytes && parsePlatform(configBytes);
  return { digest: upload.digest, bytes: upload.bytes, manifest, platform };
}

export function parseManifest(bytes: Uint8Array, contentType: string): Manifest {
  const json = objectIn('the manifest', parseManifestJson(bytes));
  const declared = json.mediaType === undefined ? undefined : textIn('mediaType', json.mediaType);
  if (declared !== undefined && contentType !== '' && declared !== contentType) {
    throw invalid(`mediaType is ${declared}, but the content type of the request is ${contentType}`);
  }
  const mediaType = contentType || declared || '';
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

/** Clients must not be able to read one manifest both as an image and as an index (CVE-2021-41190). */
function refuseAmbiguity(kind: Manifest['kind'], json: JsonObject): void {
  const foreign = kind === 'index' ? ['config', 'layers', 'blobs'] : ['manifests'];
  const found = foreign.find((field) => json[field] !== undefined);
  if (found) throw invalid(`an ${kind} manifest must not have ${found}`);
}

/** Whether a layer is downloaded from another server and never pushed. */
export const isForeignLayer = ({ mediaType }: Descriptor): boolean => /(?:foreign|nondistributable)\./.test(mediaType);

/** Returns undefined for a config that has no platform. A config may have any content, so this is no error. */
function parsePlatform(bytes: Uint8Array): Platform | undefined {
  try {
    return platformOf(parseJson(bytes, MAX_VALUES));
  } catch {
    return undefined;
  }
}

const invalid = (message: string) => new RegistryError('MANIFEST_INVALID', message);

function parseManifestJson(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes, MAX_VALUES);
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
    throw invalid(`${field} must be a string of at most 255 characters on one line`);
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
  const texts = Object.values(annotations);
  if (texts.length > MAX_ANNOTATIONS) throw invalid(`a manifest can have at most ${MAX_ANNOTATIONS} annotations`);
  for (const text of texts) {
    if (typeof text !== 'string') throw invalid('annotations must be strings');
  }
  return annotations as Readonly<Record<string, string>>;
}

const PLATFORM_WORD = /^[\w.-]{1,64}$/;

/** Returns undefined for unknown/unknown, the platform under which BuildKit stores attestations. */
function platformOf(value: unknown): Platform | undefined {
  if (!isObject(value)) return undefined;
  const { os, architecture, variant } = value;
  const isWord = (text: unknown): text is string => typeof text === 'string' && PLATFORM_WORD.test(text);
  if (!isWord(os) || !isWord(architecture) || architecture === 'unknown') return undefined;
  return isWord(variant) ? { os, architecture, variant } : { os, architecture };
}
