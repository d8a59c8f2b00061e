// Attacks of a client without any credentials.
import './stranger/expensive-requests.ts';
