"""The vocabulary: quantities, resource lists, selectors, API errors, feature gates, times, and the Clock protocol."""
