const UNRELEASED = '## [Unreleased]\n';

/** Turns the section Unreleased of a changelog into that of a version. Throws if it has no entries. */
export function releaseChangelog(text: string, version: string, date: string): string {
  const start = text.indexOf(UNRELEASED);
  if (start < 0) throw new Error(`CHANGELOG.md has no heading "${UNRELEASED.trim()}"`);
  const rest = text.slice(start + UNRELEASED.length);
  const end = rest.search(/^## /m);
  const section = (end < 0 ? rest : rest.slice(0, end)).replace('No version has been released yet.\n', '').trim();
  if (!/^- /m.test(section)) throw new Error('CHANGELOG.md has no entries under Unreleased: write what has changed');
  const before = `${text.slice(0, start)}${UNRELEASED}\n## [${version}] - ${date}\n\n${section}\n`;
  return end < 0 ? before : `${before}\n${rest.slice(end)}`;
}
