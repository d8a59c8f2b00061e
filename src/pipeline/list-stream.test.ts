import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { create, type Message } from '@bufbuild/protobuf';
import { anonymousCaller } from '../access/create-caller.ts';
import { Code } from '../base/errors.ts';
import { type GroupList, GroupListSchema } from '../contract/gen/platform/iam/v1/group.platform_pb.js';
import { files, methodTable } from '../contract/method-table.ts';
import type { Caller } from '../resource/caller.ts';
import type { ListStream } from '../resource/operation.ts';
import type { IncomingCall } from './call.ts';
import { endWithAccess, isListStream, sendListStream } from './list-stream.ts';

const LIMIT_MS = 1_000;

const [method = assert.fail()] = methodTable(files).filter(({ id }) => id === 'chainguard.platform.iam.Groups/List');
const pageOf = (id: string): GroupList => create(GroupListSchema, { items: [{ id }] });
const idIn = (page: Message): string | undefined => (page as GroupList).items[0]?.id;

/** Sends an endless list and says how far it came. */
function send(over: Partial<IncomingCall> = {}, clock = () => 0) {
  const came = { read: 0, sent: [] as (string | undefined)[], ended: false };
  async function* endless(): ListStream {
    try {
      for (;;) {
        assert.ok(++came.read < 100, 'the stream was not stopped');
        yield pageOf(String(came.read));
      }
    } finally {
      came.ended = true;
    }
  }
  const answer = sendListStream(
    endless(),
    incoming({ sendPart: (page) => void came.sent.push(idIn(page)), ...over }),
    LIMIT_MS,
    clock,
  );
  return { came, answer };
}

const incoming = (over: Partial<IncomingCall>): IncomingCall => ({
  ...{ method, wire: 'rest', authorization: undefined, requestId: '', peer: { address: '', userAgent: '' } },
  signal: () => new AbortController().signal,
  read: () => assert.fail(),
  ...over,
});

test('all parts but the last are sent in order, and the last is returned', async () => {
  const events: string[] = [];
  async function* three(): ListStream {
    for (const id of ['a', 'b']) {
      events.push(`read ${id}`);
      yield pageOf(id);
    }
    events.push('read c');
    return pageOf('c');
  }
  const sendPart = async (page: Message) => {
    await setImmediate();
    events.push(`sent ${idIn(page)}`);
  };
  const pages = three();
  assert.ok(isListStream(pages));
  assert.ok(!isListStream(pageOf('a')));
  assert.deepEqual(await sendListStream(pages, incoming({ sendPart }), LIMIT_MS, () => 0), pageOf('c'));
  assert.deepEqual(events, ['read a', 'sent a', 'read b', 'sent b', 'read c']);
});

test('reading ends when the client disconnects', async () => {
  const gone = new AbortController();
  const { came, answer } = send({
    signal: () => gone.signal,
    sendPart: (page) => (idIn(page) === '3' ? gone.abort() : undefined),
  });
  await assert.rejects(answer, { code: Code.CANCELLED });
  assert.deepEqual([came.read, came.ended], [3, true]);
});

test('reading ends at the deadline of the client', async () => {
  let now = 0;
  const { came, answer } = send({ deadline: 5 }, () => ++now);
  await assert.rejects(answer, { code: Code.DEADLINE_EXCEEDED });
  assert.deepEqual([came.read, came.ended], [5, true]);
});

test('the time limit of the server applies to each part, not to all together', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let taken = (): void => {};
  const { came, answer } = send({ sendPart: () => new Promise<void>((resolve) => (taken = resolve)) });
  for (let page = 1; page <= 5; page++) {
    // The watch begins after a turn of the event loop.
    await setImmediate();
    assert.equal(came.read, page);
    t.mock.timers.tick(LIMIT_MS - 1);
    taken();
    await setImmediate();
  }
  await setImmediate();
  t.mock.timers.tick(LIMIT_MS);
  await assert.rejects(answer, { code: Code.DEADLINE_EXCEEDED });
  assert.deepEqual([came.read, came.ended], [6, true]);
});

test('an error while reading the list fails the call', async () => {
  async function* failing(): ListStream {
    yield pageOf('a');
    throw new Error('the disk is gone');
  }
  await assert.rejects(
    sendListStream(failing(), incoming({ sendPart() {} }), LIMIT_MS, () => 0),
    { message: 'the disk is gone' },
  );
});

test('a list ends when the access of its caller changes, and not when it stays the same', async () => {
  for (const [changes, expected] of [
    [false, ['1', '2', '3']],
    [true, ['1']],
  ] as const) {
    async function* three(): ListStream {
      yield pageOf('1');
      yield pageOf('2');
      return pageOf('3');
    }
    const caller: Caller = { ...anonymousCaller, current: () => (changes ? anonymousCaller : caller) };
    const sent: (string | undefined)[] = [];
    const answer = sendListStream(
      endWithAccess(three(), { caller, db: undefined as never } as never),
      incoming({ sendPart: (page) => void sent.push(idIn(page)) }),
      LIMIT_MS,
      () => 0,
    );
    if (changes) await assert.rejects(answer, { code: Code.ABORTED });
    else sent.push(idIn(await answer));
    assert.deepEqual(sent, expected);
  }
});
