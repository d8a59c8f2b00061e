import { notFound } from '../../../base/errors.ts';
import { isObject, type JsonObject, objectIn } from '../../../formats/lenient.ts';
import type { Reader } from '../../../store/store.ts';
import type { ReadContent } from '../manifests/blob-content.ts';
import { parseJson } from '../manifests/json.ts';
import { IMAGE_CONFIGS, MAX_CONFIG_BYTES, type Manifest } from '../manifests/manifest.ts';
import { requireImageFor, requireParsed } from './find-image.ts';

export interface ImageSource {
  readonly db: Reader;
  readonly read: ReadContent;
}

/** What a container of an image runs with: the part `config` of its configuration, as its maker wrote it. */
export async function requireImageConfig(source: ImageSource, repo: string, digest: string, architecture: string) {
  const { manifest } = await requireImageFor(source.db, repo, digest, architecture);
  const config = await configOf(source, repo, manifest, (type) => IMAGE_CONFIGS.has(type));
  if (!config) throw notFound('image config', digest);
  return objectIn(config.config);
}

/** Helm keeps `Chart.yaml` as the configuration of a chart that it pushes: https://helm.sh/docs/topics/registries/ */
export async function requireChart(source: ImageSource, repo: string, digest: string): Promise<JsonObject> {
  const { manifest } = await requireParsed(source.db, repo, digest);
  const chart = await configOf(source, repo, manifest, (type) => type === 'application/vnd.cncf.helm.config.v1+json');
  if (!chart) throw notFound('chart', digest);
  return chart;
}

async function configOf(
  { db, read }: ImageSource,
  repo: string,
  { config }: Manifest,
  fits: (mediaType: string) => boolean,
): Promise<JsonObject | undefined> {
  if (!config || !fits(config.mediaType)) return undefined;
  const bytes = await read(db, repo, config.digest, MAX_CONFIG_BYTES);
  return bytes && jsonObject(bytes);
}

/** What a blob of somebody else's making holds, if it is a JSON object. */
function jsonObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    const value = parseJson(bytes);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
