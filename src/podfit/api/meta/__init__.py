"""What all kinds share.

v1          ObjectMeta, ListMeta, LabelSelector, DeleteOptions
base        the base of every Struct, and what a field may say about itself (list-map keys, defaults)
codec       JSON to Structs and back
schema      the schema that patches and field checks need, read off the Structs
validation  names, labels, metadata: the rules that every kind obeys
"""
