import { objectIn, objectsIn, textIn } from '../lenient-json.ts';

/** An image that a Helm chart names. */
export interface ChartImage {
  readonly name: string;
  /** An image reference, such as `registry.example.com/org/app:1.2`. */
  readonly image: string;
  /** Whether the chart uses the image only under a condition. */
  readonly isOptional: boolean;
}

/**
 * Annotations of Chart.yaml that list the images of a chart, as YAML: that of Artifact Hub
 * (https://artifacthub.io/docs/topics/annotations/helm/) and that of charts which support moving their images.
 */
const ANNOTATIONS = ['artifacthub.io/images', 'helm.sh/images'];
/** YAML of this size is parsed within a few milliseconds. */
const MAX_LENGTH = 32 * 1024;
const MAX_IMAGES = 100;

/**
 * Returns the images that the annotations of a chart list. Templates are not rendered, so a chart without these annotations
 * has none. The YAML parser is loaded when a chart has such an annotation, because the server needs it for nothing else.
 */
export async function readChartImages(chart: Readonly<Record<string, unknown>>): Promise<ChartImage[]> {
  const annotations = objectIn(chart.annotations);
  const texts = ANNOTATIONS.map((name) => textIn(annotations[name])).filter(({ length }) => length > 0);
  const images = new Map<string, ChartImage>();
  for (const text of texts.filter(({ length }) => length <= MAX_LENGTH)) {
    for (const { name, image, condition } of objectsIn(await parseLeniently(text))) {
      const reference = textIn(image);
      if (reference === '' || images.has(reference) || images.size >= MAX_IMAGES) continue;
      images.set(reference, { name: textIn(name), image: reference, isOptional: textIn(condition) !== '' });
    }
  }
  return [...images.values()];
}

async function parseLeniently(text: string): Promise<unknown> {
  const { parseYaml } = await import('../advisories/yaml/parse-yaml.ts');
  try {
    return parseYaml(text);
  } catch {
    return undefined;
  }
}
