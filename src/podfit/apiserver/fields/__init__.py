"""Fields of documents: how a document falls apart, which of its parts differ, and who owns them.

`parts` reads from the Structs what can be owned by itself, `sets` is the algebra of owned fields, `compare` relates
sets to documents, `merge` puts an applied document into a live one, `check` says whether it can be applied at all.
"""
