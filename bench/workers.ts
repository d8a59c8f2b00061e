/** Two processes on one port against one. */
import { dataset } from './data.ts';
import { httpLoad } from './lib/load.ts';
import { runAlone, type Suite, short } from './lib/result.ts';
import { interleaved } from './lib/rounds.ts';
import { startBenchServer } from './lib/server.ts';
import { BIG } from './lib/sizes.ts';
import { listPath } from './rest.ts';

export const workers: Suite = async (print) => {
  const data = await dataset(BIG, print);
  const [one, two] = [await startBenchServer(data), await startBenchServer(data, { workers: 2 })];
  try {
    // A list rather than a get: the generator needs a part of the two cores too, and a smaller one for dearer requests.
    const target = (server: typeof one) => ({ url: server.url, path: listPath(data), headers: server.headers });
    for (const server of [one, two]) await httpLoad(target(server), { seconds: 2 });
    const { ratio, a, b } = await interleaved(
      7,
      () => httpLoad(target(two), { seconds: 2 }),
      () => httpLoad(target(one), { seconds: 2 }),
    );
    return [
      {
        benchmark: 'two server processes (wharf serve --workers 2)',
        baseline: 'one',
        value: ratio,
        unit: 'times',
        bar: { atLeast: 1.4 },
        figures: `${short(a)}/s against ${short(b)}/s, list of 50`,
      },
    ];
  } finally {
    await one.stop();
    await two.stop();
  }
};

if (import.meta.main) await runAlone(workers);
