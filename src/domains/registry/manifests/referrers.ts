import type { Reader, Row } from '../../../store/store.ts';

/** The OCI descriptor of a manifest that refers to another one as its subject. */
export interface Referrer {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly artifactType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface ReferrersQuery {
  readonly artifactType?: string;
  /** The digest of the last referrer of the previous page. */
  readonly after?: string;
  readonly limit: number;
}

interface ReferrerRow extends Row {
  readonly digest: string;
  readonly media_type: string;
  readonly artifact_type: string | null;
  readonly annotations: string | null;
  readonly size: number;
}

const LIST = `SELECT digest, media_type, artifact_type, annotations, length(bytes) AS size FROM manifest
  WHERE repo = $1 AND subject = $2 AND digest > $3`;
const LIST_ALL = `${LIST} ORDER BY digest LIMIT $4`;
const LIST_OF_TYPE = `${LIST} AND artifact_type = $5 ORDER BY digest LIMIT $4`;

/** The referrers of a subject, ordered by digest. The subject itself need not exist. */
export async function findReferrers(
  db: Reader,
  repo: string,
  subject: string,
  { artifactType, after = '', limit }: ReferrersQuery,
): Promise<Referrer[]> {
  const rows =
    artifactType === undefined
      ? await db.all<ReferrerRow>(LIST_ALL, repo, subject, after, limit)
      : await db.all<ReferrerRow>(LIST_OF_TYPE, repo, subject, after, limit, artifactType);
  return rows.map(({ digest, media_type, artifact_type, annotations, size }) => ({
    mediaType: media_type,
    digest,
    size,
    ...(artifact_type !== null && { artifactType: artifact_type }),
    ...(annotations !== null && { annotations: JSON.parse(annotations) }),
  }));
}
