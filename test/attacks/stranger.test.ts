// Attacks of a client without any credentials.
