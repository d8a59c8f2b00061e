import { readFile } from 'node:fs/promises';

/** The host name configuration of this machine. */
export interface ResolverConfig {
  /** Returns the addresses of a name in hosts(5). */
  hostsFileAddresses(name: string): Promise<string[]>;
  /** Returns the fully qualified names to try for a name, in order, by the search list of resolv.conf(5). */
  candidateNames(name: string): Promise<string[]>;
}

/** Reads the files on every call. A missing file is treated as empty. */
export function systemResolverConfig(hosts = '/etc/hosts', resolvConf = '/etc/resolv.conf'): ResolverConfig {
  return {
    async hostsFileAddresses(name) {
      const lowerCaseName = name.toLowerCase();
      return (await readLines(hosts)).flatMap(([address = '', ...aliases]) =>
        aliases.some((alias) => alias.toLowerCase() === lowerCaseName) ? [address] : [],
      );
    },
    async candidateNames(name) {
      if (name.endsWith('.')) return [name];
      const lines = await readLines(resolvConf);
      const [, ...searchList] = lines.findLast(([keyword]) => keyword === 'search' || keyword === 'domain') ?? [];
      const options = lines.flatMap(([keyword, ...values]) => (keyword === 'options' ? values : []));
      const ndots = Number(options.findLast((option) => option.startsWith('ndots:'))?.slice('ndots:'.length) ?? 1);
      const qualified = searchList.slice(0, MAX_SEARCH_DOMAINS).map((domain) => `${name}.${domain}`);
      return name.split('.').length > ndots ? [name, ...qualified] : [...qualified, name];
    },
  };
}

/** The traditional limit of resolv.conf(5). Each search domain may cost a query that fails. */
const MAX_SEARCH_DOMAINS = 6;

/** Returns the words of each line, without comments. */
async function readLines(file: string): Promise<string[][]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').map((line) =>
    line
      .replace(/[#;].*/, '')
      .split(/\s+/)
      .filter(Boolean),
  );
}
