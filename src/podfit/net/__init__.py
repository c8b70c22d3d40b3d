"""The one door to sockets: HTTP server and client, TLS and certificates, durable files, metrics, the system clock."""
