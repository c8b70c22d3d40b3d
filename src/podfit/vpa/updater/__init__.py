"""The updater: it changes pods that run to what is recommended."""
