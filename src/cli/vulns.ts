import type { Command } from 'commander';
import { VulnerabilityMetadataSchema } from '../contract/gen/chainguard/platform/advisory/v2/advisory_pb.js';
import { VulnerabilityImportsService } from '../contract/gen/wharfinger/imports/v1/vulnerabilities_pb.js';
import { decodeVulnerabilityMetadata } from '../formats/advisories/decode-advisories.ts';
import { createApi } from './client/api.ts';
import { readContext } from './client-options.ts';
import { addExamples } from './help.ts';
import { openSource } from './imports/import-source.ts';
import { addImportOptions, type ImportOptions } from './imports/options.ts';
import { runImport } from './imports/run-import.ts';
import type { CommandSpec } from './resource/command-spec.ts';
import { addVerb } from './resource/commands.ts';

const vulnerabilities: CommandSpec = {
  name: 'vulns',
  resource: VulnerabilityMetadataSchema,
  columns: { ID: 'id', SEVERITY: 'severities.0.score', SUMMARY: 'summary' },
  examples: { list: '--ids CVE-2024-1234 --ids GHSA-2222-3333-4444' },
};

/** The commands of `wharf vulns`. */
export function addVulns(area: Command): void {
  addImport(area);
  addVerb(area, 'list', vulnerabilities);
  addExamples(area, 'wharf vulns import osv.jsonl.gz --parent $GROUP', 'wharf vulns list --ids CVE-2024-1234');
}

function addImport(area: Command): void {
  const command = addImportOptions(
    area.command('import').description('import vulnerability metadata from OSV records'),
  );
  addExamples(
    command,
    'wharf vulns import osv.jsonl.gz --parent $GROUP',
    'wharf vulns import ./osv all.zip --parent $GROUP --refusals refused.jsonl',
  );
  command.action(async (paths: string[], { parent, refusals }: ImportOptions) => {
    const context = await readContext(command);
    const source = await openSource(paths);
    const api = createApi(context);
    const { importVulnerabilities } = VulnerabilityImportsService.method;
    await runImport(context, {
      what: 'vulnerabilities',
      items: source.items(decodeVulnerabilityMetadata),
      send: (records) => api.call(importVulnerabilities, { path: [parent], body: { vulnerabilities: [...records] } }),
      readProgress: source.progress,
      refusalsFile: refusals,
    });
  });
}
