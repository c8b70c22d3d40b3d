"""The usage history that podfit keeps itself: a journal, and segments of columns that it becomes."""
