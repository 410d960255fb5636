"""The command line: commands that belong together stand in a file."""
