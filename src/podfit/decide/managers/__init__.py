"""The static policies of the CPU manager and the memory manager, as arithmetic on sets."""
