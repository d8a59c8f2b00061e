import { clone, create, type Message } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { FieldViolation } from '../../base/errors.ts';
import { timeOrderedUid } from '../../base/time-ordered-uid.ts';
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
import { findExisting, type UpsertResult } from '../../resource/upsert.ts';
import { insertAll, updateAll } from '../../resource/write.ts';
import type { Transaction } from '../../store/store.ts';
import { artifactVersions, type VersionState, versionKey } from './artifact-versions.ts';
import { type ArtifactState, artifactKey, artifacts } from './artifacts.ts';
import { isLater, rulesOf } from './ecosystems.ts';

/** What became of a version, or why it was not taken after all. */
export type Taken = Exclude<UpsertResult, 'elsewhere'> | FieldViolation;

const MAX_FILES = 2000;
const TOO_MANY_FILES: FieldViolation = {
  field: 'files',
  description: `would be more than ${MAX_FILES} of one version`,
};

/** An artifact or a version in the making. */
interface Work<M extends Message, S> {
  readonly uid: string;
  readonly before: Stored<M> | undefined;
  readonly message: M;
  state: S;
  isTouched: boolean;
}

type ArtifactWork = Work<Artifact, ArtifactState>;

interface VersionWork extends Work<ArtifactVersion, VersionState> {
  readonly artifact: ArtifactWork;
  /** When it came to be, for one that is new. */
  created: number;
}

/**
 * Adds versions to the artifacts of a group, which follow from them. Saying the same again changes nothing, not even a
 * time. `created` is what brings a version or a file that was not there.
 */
export async function putVersions(
  tx: Transaction,
  group: string,
  ecosystem: Ecosystem,
  given: readonly LibraryVersion[],
  now: number,
): Promise<Taken[]> {
  if (given.length === 0) return [];
  // One after the other, so that two who bring the same library need not agree on who is first.
  await requireParent(tx.forUpdate, artifacts, group);
  const shelf = await takeArtifacts(tx, group, ecosystem, given, now);
  const versions = await takeVersions(tx, ecosystem, given, shelf, now);
  const results = given.map((one, at) => add(versions[at] as VersionWork, one, now));
  const all = [...new Set(versions)];
  for (const version of all) if (version.isTouched) reflect(version);
  await store(tx, group, [...new Set(shelf)], all, now);
  return results;
}

/** The artifact of each given version. */
async function takeArtifacts(
  tx: Transaction,
  group: string,
  ecosystem: Ecosystem,
  given: readonly LibraryVersion[],
  now: number,
): Promise<ArtifactWork[]> {
  const keys = given.map(({ name }) => artifactKey(group, ecosystem, name));
  const known = await findExisting(tx, artifacts, keys);
  return oncePerKey(keys, (key, at): ArtifactWork => {
    const before = known.get(key);
    return {
      uid: before?.uid ?? timeOrderedUid(group, now),
      before,
      message: before
        ? clone(ArtifactSchema, before.message)
        : create(ArtifactSchema, { name: given[at]?.name ?? '', ecosystem }),
      state: (before?.state as ArtifactState | undefined) ?? { cuda: [], remediated: false },
      isTouched: false,
    };
  });
}

/** What becomes of each given version; several may be about one. */
async function takeVersions(
  tx: Transaction,
  ecosystem: Ecosystem,
  given: readonly LibraryVersion[],
  shelf: readonly ArtifactWork[],
  now: number,
): Promise<VersionWork[]> {
  const { normalVersion } = rulesOf(ecosystem);
  const keys = given.map(({ version }, at) => versionKey((shelf[at] as ArtifactWork).uid, normalVersion(version)));
  const known = await findExisting(tx, artifactVersions, keys);
  return oncePerKey(keys, (key, at): VersionWork => {
    const before = known.get(key);
    const artifact = shelf[at] as ArtifactWork;
    const version = normalVersion(given[at]?.version ?? '');
    return {
      uid: before?.uid ?? timeOrderedUid(artifact.uid, now),
      before,
      message: before
        ? clone(ArtifactVersionSchema, before.message)
        : create(ArtifactVersionSchema, { name: artifact.message.name, version }),
      state: (before?.state as VersionState | undefined) ?? { files: {}, remediated: false },
      isTouched: false,
      artifact,
      created: now,
    };
  });
}

/** One for each key; the same for the same key. */
function oncePerKey<T>(keys: readonly string[], make: (key: string, at: number) => T): T[] {
  const made = new Map<string, T>();
  return keys.map((key, at) => {
    const one = made.get(key) ?? make(key, at);
    made.set(key, one);
    return one;
  });
}

/** Puts what is given into a version, and says whether that made a difference. */
function add(work: VersionWork, given: LibraryVersion, now: number): Taken {
  const { files, remediated } = work.state;
  const isNew = ({ name }: LibraryFile): boolean => !Object.hasOwn(files, name);
  const changed = given.files.filter((file) => isNew(file) || files[file.name] !== Number(file.sizeBytes));
  const isFixed = given.remediated && !remediated;
  const { message } = work;
  const isDescribed = given.description !== '' && message.description === '';
  if (changed.length === 0 && !isFixed && !isDescribed) return 'unchanged';

  const sizes = { ...files, ...Object.fromEntries(changed.map(({ name, sizeBytes }) => [name, Number(sizeBytes)])) };
  if (Object.keys(sizes).length > MAX_FILES) return TOO_MANY_FILES;
  const result = changed.some(isNew) ? 'created' : 'updated';
  work.state = { files: sizes, remediated: remediated || given.remediated };
  work.isTouched = true;
  work.created = Math.min(work.created, ...given.files.map((file) => timeOf(file, now)));
  message.sizeBytes = Object.values(sizes).reduce((sum, size) => sum + BigInt(size), 0n);
  // Files of one version may describe it differently; without a file that is new, nobody has the last word again and again.
  if (given.description !== '' && (isDescribed || changed.length > 0)) message.description = given.description;
  return result;
}

/** Between the beginning of time and now. */
const timeOf = ({ createTime }: LibraryFile, now: number): number =>
  createTime ? Math.min(now, Math.max(0, timestampMs(createTime))) : now;

/** Lets the artifact follow from what a version has become. */
function reflect({ artifact, before, message, state }: VersionWork): void {
  const { message: shown } = artifact;
  const { version, description } = message;
  if (!before) shown.versionCount++;
  if (shown.latestVersion === '' || isLater(shown.ecosystem, version, shown.latestVersion))
    shown.latestVersion = version;
  if (version === shown.latestVersion && description !== '') shown.description = description;
  const cuda = rulesOf(shown.ecosystem).cudaOf(version);
  artifact.state = {
    cuda: [...new Set([...artifact.state.cuda, cuda])].filter((one) => one !== '').sort(),
    remediated: artifact.state.remediated || state.remediated,
  };
  artifact.isTouched = true;
}

async function store(
  tx: Transaction,
  group: string,
  shelf: readonly ArtifactWork[],
  versions: readonly VersionWork[],
  now: number,
): Promise<void> {
  const added = shelf.filter(({ before }) => !before).map((work) => ({ ...work, parent: group }));
  await insertAll(tx, artifacts, added, now);
  await updateAll(tx, artifacts, updatesOf(shelf), now);

  const [first] = shelf;
  if (first) await requireParent(tx.forShare, artifactVersions, first.uid);
  const brought = versions.filter(({ before }) => !before).map((work) => ({ ...work, parent: work.artifact.uid }));
  await insertAll(tx, artifactVersions, brought, now);
  await updateAll(tx, artifactVersions, updatesOf(versions), now);
}

const updatesOf = <M extends Message, S extends State>(works: readonly Work<M, S>[]) =>
  works.flatMap(({ before, message, state, isTouched }) => (before && isTouched ? [{ before, message, state }] : []));
