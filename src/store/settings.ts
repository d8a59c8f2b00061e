import type { Reader, Transaction } from './store.ts';

/** Reads a setting: small state that all servers of a database share, such as the key of the page tokens. */
export async function getSetting(reader: Reader, key: string): Promise<string | undefined> {
  const row = await reader.get<{ value: string }>('SELECT value FROM setting WHERE key = $1', key);
  return row?.value;
}

/** Stores `value` unless the setting exists, and returns the stored value. So servers that start concurrently agree. */
export async function putSettingIfAbsent(tx: Transaction, key: string, value: string): Promise<string> {
  await tx.run('INSERT INTO setting (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING', key, value);
  return (await getSetting(tx, key)) ?? value;
}

/** Stores `value` and locks the setting until the transaction ends. */
export async function putSetting(tx: Transaction, key: string, value: string): Promise<void> {
  await tx.run(
    'INSERT INTO setting (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value',
    key,
    value,
  );
}
