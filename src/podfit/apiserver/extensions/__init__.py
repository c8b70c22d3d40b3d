"""Extensions of the API server beyond built-in kinds: they hand hooks to the rooms below.

customresources  kinds that CustomResourceDefinitions declare
aggregation      group versions that other servers serve (APIServices)
webhooks         admission webhooks
audit            the audit log
legacy           what clients of older releases are shown and may send
"""
