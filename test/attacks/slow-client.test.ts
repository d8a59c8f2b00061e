// Attacks of a client that sends or reads as slowly as it can.
import './slow-client/revoked-while-sending.ts';
import './slow-client/unread-responses.ts';
