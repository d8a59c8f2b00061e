import { accessSync, constants } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { readJsonFile, withFileLock, writeJsonFile } from '../settings/private-file.ts';

/** Docker calls `docker-credential-<helper>` to get the credentials of a registry. */
export const HELPER = 'wharf';

/** The file in which docker, podman, skopeo, crane, oras, cosign and helm configure credential helpers. */
export const dockerConfigPath = (): string =>
  join(process.env.DOCKER_CONFIG || join(homedir(), '.docker'), 'config.json');

/** Configures the credential helper of a registry. Keeps the rest of the file. */
export const setCredentialHelper = (host: string): Promise<void> =>
  updateHelpers((helpers) => ({ ...helpers, [host]: HELPER }));

/** Returns whether the helper was configured. */
export async function removeCredentialHelper(host: string): Promise<boolean> {
  let wasSet = false;
  await updateHelpers(({ [host]: helper, ...rest }) => {
    wasSet = helper === HELPER;
    return wasSet ? rest : { [host]: helper, ...rest };
  });
  return wasSet;
}

type Helpers = Readonly<Record<string, unknown>>;

function updateHelpers(edit: (helpers: Helpers) => Helpers): Promise<void> {
  const path = dockerConfigPath();
  return withFileLock(path, async () => {
    const config = (await readJsonFile(path)) ?? {};
    const before = (config.credHelpers ?? {}) as Helpers;
    const credHelpers = edit(before);
    if (JSON.stringify(credHelpers) !== JSON.stringify(before)) await writeJsonFile(path, { ...config, credHelpers });
  });
}

/** Whether the helper program is in the PATH. */
export function isHelperInstalled(): boolean {
  const names = [`docker-credential-${HELPER}`, `docker-credential-${HELPER}.cmd`];
  return (process.env.PATH ?? '').split(delimiter).some((folder) =>
    names.some((name) => {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    }),
  );
}
