import manifest from '../../package.json' with { type: 'json' };

/** Replaced by the build; not defined when the server runs from the sources. */
declare const BUILD_COMMIT: string | undefined;

/** The version of this server, from package.json. */
export const version: string = manifest.version;

/** The commit that a release was built from. */
export const commit: string | undefined = (typeof BUILD_COMMIT === 'undefined' ? '' : BUILD_COMMIT) || undefined;
