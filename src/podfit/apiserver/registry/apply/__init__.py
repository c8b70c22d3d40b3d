"""Fields of documents: how a document falls apart, which of its parts differ, and who owns them.

`parts` reads from the Structs what can be owned by itself, `sets` is the algebra of owned fields, `compare` relates
sets to documents, `merge` puts an applied document into a live one, `check` says whether it can be applied at all.
On these stand `managed` (what every write does to managedFields), `apply` (what an object becomes by server-side
apply), and `last_applied` (the annotation of client-side apply, kept in step).
"""
