import { text } from 'node:stream/consumers';
import { runCredentialHelper } from './registry/credential-helper.ts';

const { text: output, code } = await runCredentialHelper({
  command: process.argv[2],
  input: await text(process.stdin),
});
process.stdout.write(output);
process.exitCode = code;
