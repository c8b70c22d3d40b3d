"""The wire: a folder for each API group and version, and the tables over all of them.

meta/            what all kinds share: ObjectMeta, the codec, schemas, label selectors, the shapes of names
GROUP/VERSION/   types, defaults, validation, columns, and `resources`: the entries of the table of resources
core/v1/         the same by kind: pods, services, nodes, config, limits, persistentvolumes, ...
structural/      kinds that a cluster declares for itself: schemas, CEL, values
kinds.py         every group's entries, in the order of discovery
registry.py      the one table of resources, made of them
defaults.py, validation.py   which defaults and rules a kind has
columns.py       the columns that many kinds share
"""
