"""Events of the core group."""
