import type { Log } from '../../base/log.ts';
import type { Descriptor, Manifest, ReadConfig } from '../../domains/registry/manifests/manifest.ts';
import { MAX_BYTES, prepareReport, unpackReport } from '../../domains/reports/prepare.ts';
import { putReport } from '../../domains/reports/put-report.ts';
import { DamagedError, damaged } from '../../formats/reading.ts';
import type { Store } from '../../store/store.ts';

/** There is no official type: people write `application/vnd.aquasec.trivy.report+json`, `application/vnd.anchore.grype+json` and the like. */
const REPORT = /^application\/(?:[\w.-]+[.+-])?(?:grype|trivy)(?:[.+-][\w.+-]*)?\+json(?:\+gzip)?$/i;
/** As long as RFC 6838, section 4.2, lets a type and a subtype be. */
const MAX_TYPE = 255;

const isReport = (mediaType: string): boolean => mediaType.length <= MAX_TYPE && REPORT.test(mediaType);

/** The layer of a manifest that is a vulnerability report on its subject: by its own type, or the only one of such an artifact. */
export function reportLayer({ subject, artifactType = '', layers }: Manifest): Descriptor | undefined {
  if (subject === undefined) return undefined;
  const typed = layers.find(({ mediaType }) => isReport(mediaType));
  return typed ?? (isReport(artifactType) && layers.length === 1 ? layers[0] : undefined);
}

/**
 * Reads the vulnerability reports that are attached to images. It comes after the push and before its answer: it cannot
 * fail the push, and a client that was not answered pushes again, which makes up for a crash in between.
 */
export function createAttachedReports({ store, log }: { readonly store: Store; readonly log: Log }) {
  return async (repo: string, manifest: Manifest, read: ReadConfig, now: number): Promise<void> => {
    const layer = reportLayer(manifest);
    const { subject } = manifest;
    if (!layer || subject === undefined) return;
    try {
      if (layer.size > MAX_BYTES) throw damaged('', `must be at most ${MAX_BYTES} bytes`);
      const content = await read(layer);
      if (!content) return;
      const prepared = await prepareReport(await unpackReport(content), now);
      await store.write((tx) => putReport(tx, repo, subject, prepared, now));
    } catch (error) {
      const about = { repo, subject, layer: layer.digest };
      if (!(error instanceof DamagedError)) log.error({ ...about, error }, 'an attached report was not stored');
      else log.warn({ ...about, field: error.field, reason: error.reason }, 'an attached report was not understood');
    }
  };
}
