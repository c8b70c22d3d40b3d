"""Static pods: pods of this node that nobody but the node decides about, from manifests in a directory.

manifests    a file becomes a pod: name, UID and annotations as upstream gives them
directory    which files are there; a changed file is another pod
mirrors      what the API shows of them: made, made again when deleted, removed at the end
successors   two pods of a name come after each other
writer       the status goes to the mirror, whichever it is now
"""
