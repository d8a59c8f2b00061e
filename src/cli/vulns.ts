import type { Command } from 'commander';
import { VulnerabilityMetadataSchema } from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { VulnerabilityImportsService } from '../contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { decodeVulnerabilities } from '../formats/advisories.ts';
import { createApi } from './client/api.ts';
import { contextOf } from './context.ts';
import { example } from './help.ts';
import { addImportOptions, type ImportOptions } from './imports/options.ts';
import { runImport } from './imports/run.ts';
import { openSource } from './imports/source.ts';
import { addVerb } from './resource/commands.ts';
import type { ResourceSpec } from './resource/spec.ts';

const vulnerabilities: ResourceSpec = {
  name: 'vulns',
  resource: VulnerabilityMetadataSchema,
  columns: { ID: 'id', SEVERITY: 'severities.0.score', SUMMARY: 'summary' },
  examples: { list: '--ids CVE-2024-1234 --ids GHSA-2222-3333-4444' },
};

/** The commands of `wharf vulns`. */
export function addVulns(area: Command): void {
  addImport(area);
  addVerb(area, 'list', vulnerabilities);
  example(area, 'wharf vulns import osv.jsonl.gz --parent $GROUP', 'wharf vulns list --ids CVE-2024-1234');
}

function addImport(area: Command): void {
  const command = addImportOptions(
    area.command('import').description('take in what OSV records say of vulnerabilities'),
  );
  example(
    command,
    'wharf vulns import osv.jsonl.gz --parent $GROUP',
    'wharf vulns import ./osv all.zip --parent $GROUP --refusals refused.jsonl',
  );
  command.action(async (paths: string[], { parent, refusals }: ImportOptions) => {
    const context = await contextOf(command);
    const source = await openSource(paths);
    const api = createApi(context);
    const { importVulnerabilities } = VulnerabilityImportsService.method;
    await runImport(context, {
      what: 'vulnerabilities',
      items: source.items(decodeVulnerabilities),
      send: (records) => api.call(importVulnerabilities, { path: [parent], body: { vulnerabilities: [...records] } }),
      reading: source.reading,
      refusalsFile: refusals,
    });
  });
}
