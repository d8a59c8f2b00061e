/** Pushes two images under the tag 1.0 to the repository in the argument, for walk-through.sh. */
import { ociClient, pushImage } from '../support/oci-client.ts';

const { API = '', TOKEN = '' } = process.env;
const [, , name = ''] = process.argv;

const client = ociClient(API, `Bearer ${TOKEN}`);
for (const content of ['first', 'second']) await pushImage(client, name, '1.0', content);
client.close();
