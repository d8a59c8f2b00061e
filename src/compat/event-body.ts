import { create, type DescMethodUnary, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { parentOf, type Uid } from '../base/uid.ts';
import { methodId } from '../contract/method.ts';
import { fieldOptions, methodOptions } from '../contract/options.ts';
import { type EventFacts, type Operations, writeOperation } from '../resource/operation.ts';
import { type ResponseOf, requireWrite } from './typed-operation.ts';

type EventBody = NonNullable<EventFacts['body']>;

/** Converts the body of an event. `response` is that of the method which emits the event. */
export type ConvertEventBody<Response = Message> = (body: EventBody, response: Response) => EventBody;

/**
 * Returns a function that converts the body of an event of v2 to the message that receivers expect. All methods with the
 * same type of event have the same body, whatever their version: the response of the v1 method, its request for a
 * deletion, or what the v1 method declares as `body_type`. A declared message of v2 is left as it is. A declared request
 * of v1 has the created resource and the uid of its parent.
 */
export function createEventBodyConverter<Response>(
  v1: DescMethodUnary,
  v2: DescMethodUnary,
  toV1Response: (body: Message, response: Response) => Message,
): ConvertEventBody<Response> {
  const declared = methodOptions(v1).event?.bodyType ?? '';
  if (declared !== '' && ![v1.input, v2.input, v2.output].some(({ typeName }) => typeName === declared)) {
    throw new Error(`contract: ${methodId(v1)} cannot emit an event with a ${declared}`);
  }
  const { input, output } = v1;
  const scope = input.fields.find((field) => fieldOptions(field).scope)?.localName ?? '';
  const resource = input.fields.find(({ message }) => message === output)?.localName ?? '';
  const requestOf = (fields: Record<string, unknown>): EventBody => ({
    schema: input,
    message: create(input, fields as MessageInitShape<typeof input>),
  });
  return (body, response) => {
    const { schema, message } = body;
    if (schema.typeName === declared) return body;
    const { uid } = message as Message & { readonly uid: Uid };
    if (schema === v2.input) return requestOf({ [scope]: uid });
    const converted = toV1Response(message, response);
    if (input.typeName !== declared) return { schema: output, message: converted };
    return requestOf({ [scope]: parentOf(uid), [resource]: converted });
  };
}

/** Replaces the bodies of the events of a method by those that receivers expect. */
export function convertEventBodies<M extends DescMethodUnary>(
  operations: Operations,
  method: M,
  convert: ConvertEventBody<ResponseOf<M>>,
): Operations {
  const { event, ...handlers } = requireWrite(operations, method);
  if (!event) return {};
  return writeOperation<M, unknown>(method, {
    ...handlers,
    event(ctx, request, response) {
      const { body, ...facts } = event(ctx, request, response);
      return { ...facts, body: body && convert(body, response) };
    },
  });
}
