"""Tools for all packages: errors, files, processes, options, hashes of code."""
