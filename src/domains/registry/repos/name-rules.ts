import type { Rule } from '../../../resource/definition.ts';

/** One component of a repository name in the OCI distribution specification. */
const REPO_NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG_NAME = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;

/** The limit that most clients have for a complete repository name. */
const MAX_REPO_NAME = 255;

export const isRepoName = (text: string): boolean => text.length <= MAX_REPO_NAME && REPO_NAME.test(text);
export const isTagName = (text: string): boolean => TAG_NAME.test(text);

export const repoNameRule: Rule<string> = (value) =>
  isRepoName(value)
    ? undefined
    : `must be lower-case letters and digits with single ., _, __ or dashes between them, at most ${MAX_REPO_NAME} characters`;

export const tagNameRule: Rule<string> = (value) => (isTagName(value) ? undefined : `must match ${TAG_NAME.source}`);
