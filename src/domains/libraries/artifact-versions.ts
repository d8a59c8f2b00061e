import { ArtifactVersionSchema } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { defineResource, type State } from '../../resource/definition.ts';
import { artifacts } from './artifacts.ts';

/** Properties of a version that clients do not see. */
export interface VersionState extends State {
  /** The sizes of its files in bytes, by file name. */
  readonly files: Readonly<Record<string, number>>;
  /** Whether it has security fixes that upstream does not have. */
  readonly remediated: boolean;
  /** The licence; absent in versions of earlier releases. */
  readonly license?: string;
}

/** A version of an artifact. Its create time is that of its oldest file, not that of the import. */
export const artifactVersions = defineResource({
  kind: 'artifact version',
  plural: 'artifact versions',
  schema: ArtifactVersionSchema,
  parents: [artifacts.kind],
  unique: ({ name, version }, artifact) => [
    { key: versionKey(artifact, version), taken: `a version ${version} of ${name} exists already` },
  ],
  listedUnder: 'artifact_id',
  defaultOrder: 'create_time desc',
});

/** The unique key of a version, which must be normalized by the rules of its ecosystem. */
export const versionKey = (artifact: string, version: string): string => `${artifact}/${version}`;
