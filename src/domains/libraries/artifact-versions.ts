import { ArtifactVersionSchema } from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import { defineResource, type State } from '../../resource/definition.ts';
import { artifacts } from './artifacts.ts';

/** What is known of a version beside what everybody sees. */
export interface VersionState extends State {
  /** How many bytes each of its files has. */
  readonly files: Readonly<Record<string, number>>;
  /** It carries security fixes of its own. */
  readonly remediated: boolean;
}

/** A version of an artifact. It is as old as its files, whenever they came here. */
export const artifactVersions = defineResource({
  kind: 'artifact version',
  plural: 'artifact versions',
  schema: ArtifactVersionSchema,
  parents: [artifacts.kind],
  unique: ({ name, version }, artifact) => [
    { key: versionKey(artifact, version), taken: `a version ${version} of ${name} exists already` },
  ],
  listedUnder: 'artifact_id',
  // The newest first.
  defaultOrder: 'create_time desc',
});

/** Versions are kept in the form by which their ecosystem tells them apart. */
export const versionKey = (artifact: string, version: string): string => `${artifact}/${version}`;
