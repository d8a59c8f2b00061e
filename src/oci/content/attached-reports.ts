import type { Log } from '../../base/log.ts';
import type { Descriptor, Manifest, ReadConfig } from '../../domains/registry/manifests/manifest.ts';
import { prepareInBackground } from '../../domains/reports/prepare-in-background.ts';
import { MAX_REPORT_BYTES } from '../../domains/reports/prepare-report.ts';
import { putReport } from '../../domains/reports/put-report.ts';
import { MalformedFieldError, malformed } from '../../formats/strict-json.ts';
import type { Store } from '../../store/store.ts';

/** There is no official media type. Common are `application/vnd.aquasec.trivy.report+json` and `application/vnd.anchore.grype+json`. */
const REPORT = /^application\/(?:[\w.-]+[.+-])?(?:grype|trivy)(?:[.+-][\w.+-]*)?\+json(?:\+gzip)?$/i;
/** The limit of RFC 6838, section 4.2, for type and subtype together. */
const MAX_TYPE = 255;

const isReport = (mediaType: string): boolean => mediaType.length <= MAX_TYPE && REPORT.test(mediaType);

/** The layer with a vulnerability report on the subject: one with such a media type, or the only layer of such an artifact. */
export function reportLayer({ subject, artifactType = '', layers }: Manifest): Descriptor | undefined {
  if (subject === undefined) return undefined;
  const typed = layers.find(({ mediaType }) => isReport(mediaType));
  return typed ?? (isReport(artifactType) && layers.length === 1 ? layers[0] : undefined);
}

/**
 * Stores the vulnerability reports that are attached to images. It runs after the commit of the push and before the
 * response. It cannot make the push fail, and after a crash in between the client repeats the push.
 */
export function createAttachedReports({ store, log }: { readonly store: Store; readonly log: Log }) {
  return async (repo: string, manifest: Manifest, read: ReadConfig, now: number): Promise<void> => {
    const layer = reportLayer(manifest);
    const { subject } = manifest;
    if (!layer || subject === undefined) return;
    try {
      if (layer.size > MAX_REPORT_BYTES) throw malformed('', `must be at most ${MAX_REPORT_BYTES} bytes`);
      const content = await read(layer);
      if (!content) return;
      const report = (await prepareInBackground(content, now))?.report;
      if (report instanceof MalformedFieldError) throw report;
      if (report) await store.write((tx) => putReport(tx, repo, subject, report, now));
    } catch (error) {
      const about = { repo, subject, layer: layer.digest };
      if (!(error instanceof MalformedFieldError)) log.error({ ...about, error }, 'an attached report was not stored');
      else log.warn({ ...about, field: error.field, reason: error.reason }, 'an attached report could not be read');
    }
  };
}
