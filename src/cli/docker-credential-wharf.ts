import { text } from 'node:stream/consumers';
import { help } from './registry/credential-helper.ts';

const { text: answer, code } = await help({ verb: process.argv[2], input: await text(process.stdin) });
process.stdout.write(answer);
process.exitCode = code;
