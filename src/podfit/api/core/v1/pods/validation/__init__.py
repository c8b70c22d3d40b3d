"""Validation of pods, a module for each part.

pod        a new pod as a whole
updates    what an update of a stored pod may change; a resize's rules are in `decide.resize.validation`
status     what a node may say of it
warnings   what a client is warned of
"""
