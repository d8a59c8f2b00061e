import { notFound } from '../../../base/errors.ts';
import { parseJson } from '../../../base/parse-json.ts';
import { isObject, type JsonObject, objectIn } from '../../../formats/lenient-json.ts';
import type { Reader } from '../../../store/store.ts';
import { IMAGE_CONFIGS, MAX_CONFIG_BYTES, MAX_VALUES, type Manifest } from '../manifests/manifest.ts';
import type { ReadBlob } from '../manifests/read-blob.ts';
import { requireImageForArchitecture, requireParsedManifest } from './find-image.ts';

export interface ImageReader {
  readonly db: Reader;
  readonly readBlob: ReadBlob;
}

/** The `config` object of an image config, with which containers are started. It is returned as it was pushed. */
export async function requireImageConfig(reader: ImageReader, repo: string, digest: string, architecture: string) {
  const { manifest } = await requireImageForArchitecture(reader.db, repo, digest, architecture);
  const config = await readConfig(reader, repo, manifest, (type) => IMAGE_CONFIGS.has(type));
  if (!config) throw notFound('image config', digest);
  return objectIn(config.config);
}

/** Helm stores `Chart.yaml` as the config of a chart that it pushes: https://helm.sh/docs/topics/registries/ */
export const HELM_CONFIG = 'application/vnd.cncf.helm.config.v1+json';

/** The content of `Chart.yaml` as JSON. */
export async function requireChart(reader: ImageReader, repo: string, digest: string): Promise<JsonObject> {
  const { manifest } = await requireParsedManifest(reader.db, repo, digest);
  const chart = await readConfig(reader, repo, manifest, (type) => type === HELM_CONFIG);
  if (!chart) throw notFound('chart', digest);
  return chart;
}

async function readConfig(
  { db, readBlob }: ImageReader,
  repo: string,
  { config }: Manifest,
  isAccepted: (mediaType: string) => boolean,
): Promise<JsonObject | undefined> {
  if (!config || !isAccepted(config.mediaType)) return undefined;
  const bytes = await readBlob(db, repo, config.digest, MAX_CONFIG_BYTES);
  return bytes && parseJsonObject(bytes);
}

/** Returns undefined for anything but a JSON object: clients can push any bytes as a config. */
function parseJsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value = parseJson(bytes, MAX_VALUES);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
