"""The verbs of the API, one file each: from the context, the target and the request to a response."""
