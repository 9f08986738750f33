/* The load of the key-value server. */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

/*
 * Drives the server on the loopback port with `clients` connections at once and
 * `requests` requests on each, then stops it. 0 when every answer was right, 1
 * when one was wrong, 3 when the server went away.
 */
int client_run(int port, int clients, int requests);

#endif
