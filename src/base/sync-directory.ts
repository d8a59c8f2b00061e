import { open } from 'node:fs/promises';

/** The name of a file is durable only after its directory was synced. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
