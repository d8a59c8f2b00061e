import manifest from '../../package.json' with { type: 'json' };

/** The version of this server, from package.json. */
export const version: string = manifest.version;
