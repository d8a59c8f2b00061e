import { clone, create, type Message } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { FieldViolation } from '../../base/errors.ts';
import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
import type { Uid } from '../../base/uid.ts';
import {
  type Artifact,
  ArtifactSchema,
  type ArtifactVersion,
  ArtifactVersionSchema,
  type Ecosystem,
} from '../../contract/gen/chainguard/platform/libraries/v2/artifacts_pb.js';
import type { LibraryFile, LibraryVersion } from '../../contract/gen/wharfinger/imports/v1/libraries_pb.js';
import type { State, Stored } from '../../resource/definition.ts';
import { requireParent } from '../../resource/parent.ts';
import { findExisting } from '../../resource/upsert.ts';
import { insertAll, updateAll } from '../../resource/write.ts';
import type { Transaction } from '../../store/store.ts';
import type { RecordResult } from '../imports/import-records.ts';
import { artifactVersions, type VersionState, versionKey } from './artifact-versions.ts';
import { type ArtifactState, artifactKey, artifacts } from './artifacts.ts';
import { isLater, rulesOf } from './ecosystems.ts';

const MAX_FILES = 2000;
const TOO_MANY_FILES: FieldViolation = {
  field: 'files',
  description: `a version can have at most ${MAX_FILES} files, including those of earlier imports`,
};

/** A resource that an import creates or changes. It is modified in memory and then stored. */
interface PendingChange<M extends Message, S> {
  readonly uid: Uid;
  /** Undefined when the resource is new. */
  readonly before: Stored<M> | undefined;
  readonly message: M;
  state: S;
  isChanged: boolean;
}

type ArtifactChange = PendingChange<Artifact, ArtifactState>;

interface VersionChange extends PendingChange<ArtifactVersion, VersionState> {
  readonly artifact: ArtifactChange;
  /** The create time of a new version: that of its oldest file. */
  created: number;
}

/**
 * Adds versions to the artifacts of a group, and creates or updates the artifacts. A record that adds nothing changes
 * nothing, not even a time. A result is `created` when the record adds a version or a file.
 */
export async function putVersions(
  tx: Transaction,
  parent: string,
  ecosystem: Ecosystem,
  records: readonly LibraryVersion[],
  now: number,
): Promise<RecordResult[]> {
  if (records.length === 0) return [];
  // Imports into one group run one after the other, so that two of them cannot create the same artifact.
  const group = await requireParent(tx.forUpdate, artifacts, parent);
  const artifactChanges = await beginArtifactChanges(tx, group, ecosystem, records, now);
  const versionChanges = await beginVersionChanges(tx, ecosystem, records, artifactChanges, now);
  const results = records.map((record, at) => applyRecord(versionChanges[at] as VersionChange, record, now));
  const distinctVersions = [...new Set(versionChanges)];
  for (const version of distinctVersions) if (version.isChanged) applyToArtifact(version);
  await storeChanges(tx, group, [...new Set(artifactChanges)], distinctVersions, now);
  return results;
}

/** The artifact of each record. Records of the same artifact share one object. */
async function beginArtifactChanges(
  tx: Transaction,
  group: Uid,
  ecosystem: Ecosystem,
  records: readonly LibraryVersion[],
  now: number,
): Promise<ArtifactChange[]> {
  const keys = records.map(({ name }) => artifactKey(group, ecosystem, name));
  const existing = await findExisting(tx, artifacts, keys);
  return mapKeysOnce(keys, (key, at): ArtifactChange => {
    const before = existing.get(key);
    return {
      uid: before?.uid ?? timeOrderedUid(group, now),
      before,
      message: before
        ? clone(ArtifactSchema, before.message)
        : create(ArtifactSchema, { name: records[at]?.name ?? '', ecosystem }),
      state: (before?.state as ArtifactState | undefined) ?? { cuda: [], remediated: false, license: '' },
      isChanged: false,
    };
  });
}

/** The version of each record. Records of the same version share one object. */
async function beginVersionChanges(
  tx: Transaction,
  ecosystem: Ecosystem,
  records: readonly LibraryVersion[],
  artifactChanges: readonly ArtifactChange[],
  now: number,
): Promise<VersionChange[]> {
  const { normalizeVersion } = rulesOf(ecosystem);
  const keys = records.map(({ version }, at) =>
    versionKey((artifactChanges[at] as ArtifactChange).uid, normalizeVersion(version)),
  );
  const existing = await findExisting(tx, artifactVersions, keys);
  return mapKeysOnce(keys, (key, at): VersionChange => {
    const before = existing.get(key);
    const artifact = artifactChanges[at] as ArtifactChange;
    const version = normalizeVersion(records[at]?.version ?? '');
    return {
      uid: before?.uid ?? timeOrderedUid(artifact.uid, now),
      before,
      message: before
        ? clone(ArtifactVersionSchema, before.message)
        : create(ArtifactVersionSchema, { name: artifact.message.name, version }),
      state: (before?.state as VersionState | undefined) ?? { files: {}, remediated: false, license: '' },
      isChanged: false,
      artifact,
      created: now,
    };
  });
}

/** Maps each key to a value. `make` is called once per distinct key. */
function mapKeysOnce<T>(keys: readonly string[], make: (key: string, at: number) => T): T[] {
  const made = new Map<string, T>();
  return keys.map((key, at) => {
    const value = made.get(key) ?? make(key, at);
    made.set(key, value);
    return value;
  });
}

/** Adds the files and the description of a record to its version. */
function applyRecord(change: VersionChange, record: LibraryVersion, now: number): RecordResult {
  const { files, remediated, license = '' } = change.state;
  const isNew = ({ name }: LibraryFile): boolean => !Object.hasOwn(files, name);
  const changedFiles = record.files.filter((file) => isNew(file) || files[file.name] !== Number(file.sizeBytes));
  const addsRemediation = record.remediated && !remediated;
  const { message } = change;
  const addsDescription = record.description !== '' && message.description === '';
  const addsLicense = record.license !== '' && license === '';
  if (changedFiles.length === 0 && !addsRemediation && !addsDescription && !addsLicense) return 'unchanged';

  const added = Object.fromEntries(changedFiles.map(({ name, sizeBytes }) => [name, Number(sizeBytes)]));
  const sizes = { ...files, ...added };
  if (Object.keys(sizes).length > MAX_FILES) return TOO_MANY_FILES;
  const result = changedFiles.some(isNew) ? 'created' : 'updated';
  change.state = {
    files: sizes,
    remediated: remediated || record.remediated,
    license: (changedFiles.length > 0 && record.license) || license || record.license,
  };
  change.isChanged = true;
  change.created = Math.min(change.created, ...record.files.map((file) => createTimeOf(file, now)));
  message.sizeBytes = Object.values(sizes).reduce((sum, size) => sum + BigInt(size), 0n);
  // Files of one version may have different descriptions and licences. Only a changed file replaces them. Otherwise
  // repeated imports of these files would overwrite them in turns.
  if (record.description !== '' && (addsDescription || changedFiles.length > 0)) {
    message.description = record.description;
  }
  return result;
}

/** The time of a file, neither before 1970 nor in the future. */
export const createTimeOf = ({ createTime }: LibraryFile, now: number): number =>
  createTime ? Math.min(now, Math.max(0, timestampMs(createTime))) : now;

/** Updates what an artifact shows of its versions. */
function applyToArtifact({ artifact, before, message: { version, description }, state }: VersionChange): void {
  const { message } = artifact;
  if (!before) message.versionCount++;
  if (message.latestVersion === '' || isLater(message.ecosystem, version, message.latestVersion)) {
    message.latestVersion = version;
  }
  const isLatest = version === message.latestVersion;
  if (isLatest && description !== '') message.description = description;
  const cuda = rulesOf(message.ecosystem).cudaOf(version);
  artifact.state = {
    cuda: [...new Set([...artifact.state.cuda, cuda])].filter((each) => each !== '').sort(),
    remediated: artifact.state.remediated || state.remediated,
    license: (isLatest && state.license) || artifact.state.license || '',
  };
  artifact.isChanged = true;
}

async function storeChanges(
  tx: Transaction,
  group: Uid,
  artifactChanges: readonly ArtifactChange[],
  versionChanges: readonly VersionChange[],
  now: number,
): Promise<void> {
  const newArtifacts = artifactChanges.filter(({ before }) => !before).map((each) => ({ ...each, parent: group }));
  await insertAll(tx, artifacts, newArtifacts, now);
  await updateAll(tx, artifacts, updatesOf(artifactChanges), now);

  const [first] = artifactChanges;
  if (first) await requireParent(tx.forShare, artifactVersions, first.uid);
  const newVersions = versionChanges
    .filter(({ before }) => !before)
    .map((each) => ({ ...each, parent: each.artifact.uid }));
  await insertAll(tx, artifactVersions, newVersions, now);
  await updateAll(tx, artifactVersions, updatesOf(versionChanges), now);
}

const updatesOf = <M extends Message, S extends State>(changes: readonly PendingChange<M, S>[]) =>
  changes.flatMap(({ before, message, state, isChanged }) => (before && isChanged ? [{ before, message, state }] : []));
