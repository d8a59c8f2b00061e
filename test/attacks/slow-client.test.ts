// Attacks of a client that sends or reads as slowly as it can.
