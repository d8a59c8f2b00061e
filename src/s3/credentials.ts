import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Credentials } from './signature.ts';

/**
 * Reads the keys from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Without them from the profile
 * AWS_PROFILE of the file AWS_SHARED_CREDENTIALS_FILE, by default `~/.aws/credentials`.
 */
export function readCredentials(env: NodeJS.ProcessEnv): Credentials {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (accessKeyId && secretAccessKey) {
    return { accessKeyId, secretAccessKey, sessionToken: env.AWS_SESSION_TOKEN || undefined };
  }
  if (accessKeyId || secretAccessKey) {
    const missing = accessKeyId ? 'AWS_SECRET_ACCESS_KEY' : 'AWS_ACCESS_KEY_ID';
    throw new Error(`${missing} is not set: S3 needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`);
  }
  const path = env.AWS_SHARED_CREDENTIALS_FILE || join(homedir(), '.aws', 'credentials');
  const profile = env.AWS_PROFILE || 'default';
  const found = readProfile(path, profile);
  if (found) return found;
  throw new Error(
    'there are no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, ' +
      `or write them to the profile [${profile}] of ${path}`,
  );
}

function readProfile(path: string, profile: string): Credentials | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`cannot read the keys for S3 from ${path}: ${(error as Error).message}`);
  }
  const values = parseProfiles(text).get(profile);
  const accessKeyId = values?.get('aws_access_key_id');
  const secretAccessKey = values?.get('aws_secret_access_key');
  if (!accessKeyId || !secretAccessKey) return undefined;
  return { accessKeyId, secretAccessKey, sessionToken: values?.get('aws_session_token') };
}

/** Parses the sections of an INI file. */
export function parseProfiles(text: string): Map<string, Map<string, string>> {
  const profiles = new Map<string, Map<string, string>>();
  let current: Map<string, string> | undefined;
  for (const line of text.split(/\r?\n/)) {
    const section = /^\s*\[\s*(?:profile\s+)?([^\]]+?)\s*\]/.exec(line)?.[1];
    if (section !== undefined) {
      current = new Map();
      profiles.set(section, current);
    }
    const [, name, value] = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) current?.set(name.toLowerCase(), value);
  }
  return profiles;
}
