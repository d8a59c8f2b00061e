import { accessSync, constants } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { locked, readObject, writeObject } from '../settings/private-file.ts';

/** Docker calls `docker-credential-<helper>` for the credentials of a registry. */
export const HELPER = 'wharf';

/** The file in which docker, podman, skopeo, crane, oras, cosign and helm look for credential helpers. */
export const dockerConfigPath = (): string =>
  join(process.env.DOCKER_CONFIG || join(homedir(), '.docker'), 'config.json');

/** Has docker-compatible clients ask us for the credentials of a registry. All else in the file stays as it is. */
export const setHelper = (host: string): Promise<void> => change((helpers) => ({ ...helpers, [host]: HELPER }));

/** Answers whether they did so. */
export async function unsetHelper(host: string): Promise<boolean> {
  let wasSet = false;
  await change(({ [host]: found, ...rest }) => {
    wasSet = found === HELPER;
    return wasSet ? rest : { [host]: found, ...rest };
  });
  return wasSet;
}

type Helpers = Readonly<Record<string, unknown>>;

function change(edit: (helpers: Helpers) => Helpers): Promise<void> {
  const path = dockerConfigPath();
  return locked(path, async () => {
    const config = (await readObject(path)) ?? {};
    const before = (config.credHelpers ?? {}) as Helpers;
    const credHelpers = edit(before);
    if (JSON.stringify(credHelpers) !== JSON.stringify(before)) await writeObject(path, { ...config, credHelpers });
  });
}

/** Whether clients will find the program that they are told to call. */
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
