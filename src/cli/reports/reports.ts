import type { JsonObject } from '@bufbuild/protobuf';
import type { Command } from 'commander';
import { ReportSchema, ReportsService } from '../../contract/gen/wharfinger/reports/v1/reports_pb.js';
import { createApi } from '../client/api.ts';
import { addClientOptions, readContext } from '../client-options.ts';
import { addExamples } from '../help.ts';
import { detailsText } from '../output/details.ts';
import { print } from '../output/print.ts';
import { tableText } from '../output/table.ts';
import { columnsOf } from '../resource/columns.ts';
import type { CommandSpec } from '../resource/command-spec.ts';
import { addVerb } from '../resource/commands.ts';
import { addReportImport } from './import.ts';

const reports: CommandSpec = {
  name: 'reports',
  resource: ReportSchema,
  columns: {
    UID: 'uid',
    SCANNER: 'scanner.name',
    SCANNED: 'scanTime',
    CRITICAL: 'counts.critical',
    HIGH: 'counts.high',
    MEDIUM: 'counts.medium',
    LOW: 'counts.low',
    NEGLIGIBLE: 'counts.negligible',
    UNKNOWN: 'counts.unknown',
    DIGEST: 'digest',
  },
  examples: { list: '--children-of $REPO --digest sha256:…' },
};

const findingColumns = columnsOf({
  VULNERABILITY: 'id',
  SEVERITY: 'severity',
  PACKAGE: 'package.name',
  VERSION: 'package.version',
  FIXED: 'fix.versions',
});

/** The commands of `wharf reports`. */
export function addReports(area: Command): void {
  addReportImport(area);
  addVerb(area, 'list', reports);
  addShow(area);
  addExamples(area, 'wharf reports import grype.json --repo $REPO', 'wharf reports list --children-of $REPO');
}

/** Adds a command that prints a report and a table of its findings. */
function addShow(area: Command): void {
  const command = area.command('show').description('print a report and its findings').argument('<uid>');
  addExamples(addClientOptions(command), 'wharf reports show $ID', 'wharf reports show $ID -o json');
  command.action(async () => {
    const context = await readContext(command);
    const report = await createApi(context).call(ReportsService.method.getReport, { path: command.args });
    print(context, report, () => {
      const { findings = [], ...rest } = report;
      const rows = (findings as JsonObject[]).map(findingColumns.cells);
      const table = rows.length > 0 ? `\n${tableText(findingColumns.header, rows, context.terminal.width)}` : '';
      return detailsText(rest) + table;
    });
  });
}
