"""The verbs of the API, one file each: from the context, the request info and the request to a response."""
