"""The wire: a folder for each API group and version, and the tables over all of them.

meta/            what all kinds share: ObjectMeta, the codec, schemas, label selectors, the shapes of names
GROUP/VERSION/   types, defaults, validation, columns
core/v1/         the same by kind: pods, services, nodes, config, limits, persistentvolumes, ...
structural/      kinds that a cluster declares for itself: schemas, CEL, values
kinds/           a file for each group: its entries of the table of resources
registry.py      the one table of resources, made of them, in the order of discovery
defaults.py, validation.py, warnings/   which defaults, rules and warnings a kind has
"""
