"""Validation of jobs and cron jobs."""
