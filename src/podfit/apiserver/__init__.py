"""The API server: ordered rooms, each of which imports only those below it.

server, resources, paths, admission_chain   compose the rooms
housekeeping, extensions                    bootstrap; custom kinds, aggregation, webhooks, audit, legacy clients
http                                        flow control, metrics of requests, discovery, OpenAPI
handlers                                    the verbs and the subresources
admission, authn, authz                     plugins; who asks; whether they may
registry                                    strategies, stored objects, patches, apply
request                                     what a request says
context                                     what all of it works with: store, clock, gates
"""
