"""The command line: one module a verb, loaded when it is called; `render` is the only module that prints."""
