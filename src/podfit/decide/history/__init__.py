"""What is kept of the usage history, for how long and how finely; and which questions about it may be asked."""
