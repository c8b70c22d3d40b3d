"""Custom resources: kinds that CustomResourceDefinitions declare, served beside the built-in ones.

`kinds` makes a table's entry of each served version of a definition, `table` keeps the table in step with the stored
definitions, `view` shows stored objects in the version that is asked for, so that every verb works on them as on
others, `scale` knows where an object keeps its replicas, `deletion` empties a kind whose definition is deleted.
"""
