// Attacks of other machines in the network of the server: receivers of events, issuers, and observers of traffic.
import './network-neighbour/debugger.ts';
import './network-neighbour/log-lines.ts';
import './network-neighbour/sinks.ts';
import './network-neighbour/tls.ts';
