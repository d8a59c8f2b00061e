import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Advisory,
  type AdvisoryEvent,
  AdvisorySchema,
  ReviewState,
} from '../src/contract/gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js';
import { deriveAdvisoryId } from '../src/domains/advisories/advisory-id.ts';

/** The average in the public database of this ecosystem. */
const ADVISORIES_PER_PACKAGE = 19;
const FIRST_EVENT_TIME = Date.UTC(2024, 0, 1);

type Init = Parameters<typeof create<typeof AdvisorySchema>>[1];
type EventInit = Partial<Omit<AdvisoryEvent, '$typeName'>>;

/** Returns the i-th advisory of a synthetic database, which is always the same. */
export function advisoryRecord(i: number): Advisory {
  const pkg = Math.floor(i / ADVISORIES_PER_PACKAGE);
  const component = `component-${(i * 7) % 5_000}`;
  const events = [detectionEvent(i, component), lastEvent(i)];
  const init = {
    advisoryId: deriveAdvisoryId('bench', String(i)),
    artifactName: `package-${pkg}`,
    artifactType: 'apk',
    artifactArchitecture: i % 2 === 0 ? 'x86_64' : 'aarch64',
    componentName: component,
    componentType: ['go-module', 'python', 'npm', 'binary'][i % 4] ?? '',
    componentLocation: `/usr/bin/tool-${pkg}`,
    author: 'importer',
    aliases: [`CVE-2024-${i}`, ...(i % 2 === 0 ? [`GHSA-${i.toString(16).padStart(4, '0')}-2345-6789`] : [])],
    events: i % 3 === 0 ? events.slice(0, 1) : events,
  };
  return create(AdvisorySchema, init as Init);
}

const detectionEvent = (i: number, component: string): EventInit => ({
  author: `analyst-${i % 20}`,
  createTime: timestampFromMs(FIRST_EVENT_TIME + i * 1000),
  reviewState: ReviewState.APPROVED,
  type: {
    case: 'detection',
    value: {
      type: {
        case: 'scanv1',
        value: { scanner: 'grype', component, componentVersion: `v1.${i % 50}.0`, componentLocation: '/usr/bin/tool' },
      },
    },
  } as AdvisoryEvent['type'],
});

const lastEvent = (i: number): EventInit => ({
  author: `analyst-${i % 20}`,
  createTime: timestampFromMs(FIRST_EVENT_TIME + i * 1000 + 60_000),
  reviewState: ReviewState.APPROVED,
  type: (i % 5 === 0
    ? { case: 'fixNotPlanned', value: { note: 'The authors of the component no longer maintain this version.' } }
    : { case: 'fixed', value: { fixedVersion: `1.${i % 50}.1-r0` } }) as AdvisoryEvent['type'],
});
