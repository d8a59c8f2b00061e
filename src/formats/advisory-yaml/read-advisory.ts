import { type AdvisoryJson, checkAdvisory, type EventJson } from '../advisory.ts';
import { advisoryIdFrom, isAdvisoryId } from '../advisory-id.ts';
import { damaged, type Fields, fieldsOf, filled, givenText, listOf, textOf, textsOf } from '../reading.ts';
import { REST_KEY, withRest } from '../rest.ts';
import { readEvent } from './read-event.ts';

/** Reads one advisory of a file, and what an export of ours had to say beyond the format. */
export function readAdvisory(artifactName: string, value: unknown, field: string): AdvisoryJson {
  const given = fieldsOf(value, field);
  const events = listOf(given.events, `${field}.events`).map((event, at) =>
    wholeEvent(event, `${field}.events[${at}]`),
  );
  const core = coreOf(
    artifactName,
    given,
    events.map(({ core }) => core),
    field,
  );
  const { [REST_KEY]: rest } = given;
  if (rest === undefined && events.every((event) => event.rest === undefined)) return core;
  const whole = {
    ...core,
    ...(events.length > 0 && { events: events.map(({ core, rest = {} }) => withRest(core, rest)) }),
  };
  return checkAdvisory(withRest(whole, restIn(rest, field)), field);
}

function coreOf(artifactName: string, given: Fields, events: EventJson[], field: string): AdvisoryJson {
  const id = givenText(given.id, `${field}.id`);
  const aliases = textsOf(given.aliases, `${field}.aliases`);
  const scan = events.find(({ detection }) => detection?.scanv1)?.detection?.scanv1 ?? {};
  return filled({
    // Early files call an advisory by the vulnerability.
    advisoryId: isAdvisoryId(id) ? id : advisoryIdFrom(id, 'apk', artifactName),
    artifactName,
    artifactType: 'apk',
    componentName: scan.component ?? '',
    componentType: scan.componentType ?? '',
    componentLocation: scan.componentLocation ?? '',
    aliases: isAdvisoryId(id) || aliases.includes(id) ? aliases : [id, ...aliases],
    events,
  });
}

function wholeEvent(value: unknown, field: string): { core: EventJson; rest?: Fields } {
  const given = fieldsOf(value, field);
  const { [REST_KEY]: rest } = given;
  return rest === undefined
    ? { core: readEvent(given, field) }
    : { core: readableEvent(given), rest: restIn(rest, field) };
}

/** As much of an event as the format can say, which may be nothing, such as of a fix in no version. */
export function readableEvent(given: Fields): EventJson {
  try {
    return readEvent(given, '');
  } catch {
    return {};
  }
}

/** Kept as one line of JSON: YAML would make it long, and say no more. */
function restIn(value: unknown, field: string): Fields {
  if (value === undefined) return {};
  try {
    return fieldsOf(JSON.parse(textOf(value, field)), field);
  } catch {
    throw damaged(`${field}.${REST_KEY}`, 'must be the JSON that an export wrote');
  }
}
