"""The content of a request before anything is done: its request info, options and body.

request_info     group, version, resource, name and verb, from method and path
bodies           from bytes of a media type (JSON, YAML, protobuf) to a typed object with its defaults
representations  how the answer is wanted: whole objects, tables, metadata only
"""
