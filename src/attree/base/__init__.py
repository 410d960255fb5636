"""What every room uses: errors, files, processes, options, hashes of code."""
