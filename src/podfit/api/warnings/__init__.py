"""Warnings about objects that are valid and hardly meant: about addresses, storage, workloads and configuration."""
