// Attacks of a client without any credentials.
import './stranger/connections.ts';
import './stranger/expensive-requests.ts';
import './stranger/forged-addresses.ts';
import './stranger/operational-details.ts';
import './stranger/pipelined-requests.ts';
import './stranger/rates.ts';
import './stranger/unfinished-messages.ts';
