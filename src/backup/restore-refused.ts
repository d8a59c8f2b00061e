/** The place or the backup does not permit a restore. The message says what to do. */
export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';
}
