import type { FieldViolation } from '../../../base/errors.ts';
import type {
  CustomOverlay,
  CustomOverlay_Accounts,
  CustomOverlay_Certificates,
  CustomOverlay_ImageContents,
} from '../../../contract/gen/chainguard/platform/registry/v2/repos_pb.js';
import { itemProblems } from './item-problems.ts';

const PACKAGE = /^[^\s\p{Cc}]{1,255}$/u;
const LINE = /^\P{Cc}{1,2048}$/u;
const FILE_NAME = /^[\w@-][\w.@-]{0,254}$/;
const VARIABLE = /^[A-Za-z_]\w{0,254}$/;
const ANNOTATION = /^[^\s\p{Cc}]{1,255}$/u;
const ACCOUNT = /^[A-Za-z_][\w.-]{0,31}$/;
const RUN_AS = /^(?:[A-Za-z_][\w.-]{0,31}|\d{1,10})$/;
const PATH = /^\/\P{Cc}{0,254}$/u;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----/;

const MAX_ITEMS = 100;
const MAX_VALUE = 4096;
const MAX_CONTENT = 64 * 1024;

/** Prefixes that are reserved for the builder of the images. */
const RESERVED_VARIABLES = ['CHAINGUARD_'];
const RESERVED_ANNOTATIONS = ['dev.chainguard.', 'org.opencontainers.'];

/** The problems of an overlay, which an organization adds to images. The contract itself checks required fields. */
export function overlayProblems({
  contents,
  environment,
  annotations,
  accounts,
  certificates,
}: CustomOverlay): FieldViolation[] {
  return [
    ...(contents ? contentsProblems(contents) : []),
    ...entryProblems('environment', environment, VARIABLE, 'the name of an environment variable', RESERVED_VARIABLES),
    ...entryProblems(
      'annotations',
      annotations,
      ANNOTATION,
      'one word of at most 255 characters',
      RESERVED_ANNOTATIONS,
    ),
    ...(accounts ? accountsProblems(accounts) : []),
    ...(certificates ? certificatesProblems(certificates) : []),
  ].map(({ field, description }) => ({ field: `custom_overlay.${field}`, description }));
}

const matches =
  (pattern: RegExp) =>
  (text: string): boolean =>
    pattern.test(text);

const isFileName = (name: string): boolean => name === '' || FILE_NAME.test(name);
const isContent = (content: string): boolean => content.length <= MAX_CONTENT;
const NAMED_CONTENT = `must have a file name without slashes, and content of at most ${MAX_CONTENT} characters`;

function contentsProblems({ packages, runtimeRepositories, runtimeKeyring }: CustomOverlay_ImageContents) {
  const [word, line] = ['must be one word of at most 255 characters', 'must be one line of at most 2048 characters'];
  return [
    ...itemProblems('contents.packages', packages, MAX_ITEMS, matches(PACKAGE), word),
    ...itemProblems('contents.runtime_repositories', runtimeRepositories, MAX_ITEMS, matches(LINE), line),
    ...itemProblems(
      'contents.runtime_keyring',
      runtimeKeyring,
      MAX_ITEMS,
      ({ name, content }) => isFileName(name) && isContent(content),
      NAMED_CONTENT,
    ),
  ];
}

function entryProblems(
  field: string,
  entries: Readonly<Record<string, string>>,
  keyPattern: RegExp,
  keyDescription: string,
  reservedPrefixes: readonly string[],
): FieldViolation[] {
  const all = Object.entries(entries);
  if (all.length > MAX_ITEMS) return [{ field, description: `must have at most ${MAX_ITEMS} entries` }];
  return all.flatMap(([key, value]) => {
    const path = `${field}[${key.slice(0, 64)}]`;
    const reserved = reservedPrefixes.find((prefix) => key.startsWith(prefix));
    if (reserved) return [{ field: path, description: `its key must not begin with ${reserved}` }];
    if (!keyPattern.test(key)) return [{ field: path, description: `its key must be ${keyDescription}` }];
    if (value.length > MAX_VALUE) return [{ field: path, description: `must be at most ${MAX_VALUE} characters` }];
    return [];
  });
}

function accountsProblems({ runAs, users, groups }: CustomOverlay_Accounts): FieldViolation[] {
  const isAccount = (text: string) => text === '' || ACCOUNT.test(text);
  const isPath = (text: string) => text === '' || PATH.test(text);
  return [
    ...(runAs === '' || RUN_AS.test(runAs)
      ? []
      : [{ field: 'accounts.run_as', description: 'must be a user name or number' }]),
    ...itemProblems(
      'accounts.users',
      users,
      MAX_ITEMS,
      ({ username, uid, gid, groupName, shell, homeDir }) =>
        isAccount(username) && uid >= 0 && gid >= 0 && isAccount(groupName) && isPath(shell) && isPath(homeDir),
      'must have a username of at most 32 letters, digits, _, . and -, no negative uid or gid, and absolute paths',
    ),
    ...itemProblems(
      'accounts.groups',
      groups,
      MAX_ITEMS,
      ({ groupname, gid, members }) =>
        isAccount(groupname) && gid >= 0 && members.length <= MAX_ITEMS && members.every(matches(ACCOUNT)),
      `must have a groupname of at most 32 letters, digits, _, . and -, no negative gid, and at most ${MAX_ITEMS} members`,
    ),
  ];
}

function certificatesProblems({ additional, providers }: CustomOverlay_Certificates): FieldViolation[] {
  return [
    ...itemProblems(
      'certificates.additional',
      additional,
      MAX_ITEMS,
      ({ name, content }) => isFileName(name) && isContent(content) && (content === '' || CERTIFICATE.test(content)),
      `${NAMED_CONTENT} in PEM form`,
    ),
    ...itemProblems('certificates.providers', providers, MAX_ITEMS, matches(PACKAGE), 'must be one word'),
  ];
}
