"""The verbs of the API, one file each; every one takes the context, the target and the request and answers a response."""
