"""From the words of a request (options, header, JSON, an earlier job) to the request itself."""
