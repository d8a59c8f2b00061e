import { readFile } from 'node:fs/promises';

/** What a machine knows of names beside DNS. */
export interface SystemNames {
  /** The addresses that it has itself for a name; none for most. */
  addressesOf(name: string): Promise<string[]>;
  /** The names that a short one may stand for, the likeliest first. */
  completed(name: string): Promise<string[]>;
}

/** Reads hosts(5) and resolv.conf(5) as they are at that moment. Where there are none, nothing is known. */
export function systemNames(hosts = '/etc/hosts', resolvConf = '/etc/resolv.conf'): SystemNames {
  return {
    async addressesOf(name) {
      const wanted = name.toLowerCase();
      return (await wordsOf(hosts)).flatMap(([address = '', ...names]) =>
        names.some((one) => one.toLowerCase() === wanted) ? [address] : [],
      );
    },
    async completed(name) {
      if (name.endsWith('.')) return [name];
      const lines = await wordsOf(resolvConf);
      const [, ...endings] = lines.findLast(([word]) => word === 'search' || word === 'domain') ?? [];
      const options = lines.flatMap(([word, ...rest]) => (word === 'options' ? rest : []));
      const ndots = Number(options.findLast((one) => one.startsWith('ndots:'))?.slice('ndots:'.length) ?? 1);
      const longer = endings.slice(0, MAX_ENDINGS).map((ending) => `${name}.${ending}`);
      return name.split('.').length > ndots ? [name, ...longer] : [...longer, name];
    },
  };
}

/** As many as systems used to take; each may be asked for in vain. */
const MAX_ENDINGS = 6;

/** The words of each line, without comments. */
async function wordsOf(file: string): Promise<string[][]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text.split('\n').map((line) =>
    line
      .replace(/[#;].*/, '')
      .split(/\s+/)
      .filter(Boolean),
  );
}
