"""Patches: JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes' strategic merge patch, on decoded JSON.

Each is a pure function from a document and a patch to a new document; what does not change is shared with the old one.
"""
