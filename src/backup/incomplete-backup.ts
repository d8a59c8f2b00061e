/** A backup was created, but the server has lost blobs that it should contain. */
export class IncompleteBackupError extends Error {
  override readonly name = 'IncompleteBackupError';
}

/** By name: the process that runs backups and the server are bundled separately, and each has a class of its own. */
export const isIncompleteBackup = (error: unknown): boolean =>
  error instanceof Error && error.name === 'IncompleteBackupError';
